/* What is said once, and in which words. */
#ifndef IBSHIFT_JOB_SAY_H
#define IBSHIFT_JOB_SAY_H

#include <stdbool.h>
#include <stdint.h>

/* Who speaks, and to whom. The first folder with a help file is read: from 6.0 on Open MPI finds only those that it was
 * built with. */
struct ibshift_teller {
    const char *folders[2]; /* NULL: there is no second one */
    const char *host;
    uint32_t job, self;                           /* this process in it */
    void (*put)(void *context, const char *text); /* NULL: standard error */
    void *context;
};

/* Before anything else of this header; kept is what it points to. */
void ibshift_teller_set(const struct ibshift_teller *teller);
const char *ibshift_teller_host(void);

/*
 * Tells people of a topic of help-mca-coll-ibshift.txt; once a job means that rank 0 alone does, once a
 * host that the first process there does which has it to say (and it alone does again), whatever the
 * numbers in the text. The topic is a literal: the lint compares it with the file.
 */
void ibshift_help(const char *topic, ...);
void ibshift_help_once_a_job(const char *topic, ...);
void ibshift_help_once_a_host(const char *topic, ...);

/* One line for people, of what was chosen: as printf(). */
void ibshift_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A dead peer fails every collective with it: it is told of once, not each time. */
bool ibshift_is_news(uint32_t peer, int status);

/* Why a collective with a peer has failed: its status, in words. */
const char *ibshift_cause_text(int status);

/* A name that the user gave, such as a communicator's: no control characters are left in text. */
void ibshift_make_plain(char *text);

#endif
