/* What is said once, and in which words. */
#ifndef IBSHIFT_JOB_SAY_H
#define IBSHIFT_JOB_SAY_H

#include <stdbool.h>
#include <stdint.h>

/* What a tool may want to hear of; each with the numbers that are written beside it. */
enum ibshift_event_kind {
    IBSHIFT_EVENT_CHOICE,   /* value: the algorithm, as variables count; detail: its radix */
    IBSHIFT_EVENT_LOST,     /* value: the rank that is not heard of any more; detail: an errno */
    IBSHIFT_EVENT_FALLBACK, /* a collective runs beneath */
    IBSHIFT_EVENT_SKIPPED,  /* value: functions of a communicator that nobody is beneath */
    IBSHIFT_EVENTS
};

struct ibshift_event {
    uint32_t group;
    int32_t collective; /* -1: none */
    int32_t value, detail;
    uint64_t bytes; /* as the choice looks at them */
};

/* Who speaks, and to whom. The first folder with a help file is read: from 6.0 on Open MPI finds only those that it was
 * built with. */
struct ibshift_teller {
    const char *folders[2]; /* NULL: there is no second one */
    const char *host;
    uint32_t job, self;                           /* this process in it */
    void (*put)(void *context, const char *text); /* NULL: standard error */
    void *context;
    void (*event)(enum ibshift_event_kind kind,
                  const struct ibshift_event *event); /* NULL: nobody */
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

void ibshift_raise(enum ibshift_event_kind kind, struct ibshift_event event);

/* One line for people, of what was chosen: as printf(). */
void ibshift_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A dead peer fails every collective with it: it is told of once, not each time. */
bool ibshift_is_news(uint32_t peer, int status);

/* Why a collective with a peer has failed: its status, in words. */
const char *ibshift_cause_text(int status);

/* A name that the user gave, such as a communicator's: no control characters are left in text. */
void ibshift_make_plain(char *text);

#endif
