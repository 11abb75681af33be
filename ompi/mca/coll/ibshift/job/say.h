/* What is said once, and in which words. */
#ifndef IBSHIFT_JOB_SAY_H
#define IBSHIFT_JOB_SAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* A topic of a help file, [topic] up to the next one, between two lines of dashes; for free(). The file is
 * in the first of both folders that has it. From 6.0 on Open MPI finds only those that it was built with. */
char *ibshift_topic_text(const char *const folders[2], const char *topic, va_list arguments);

/* Whether this process is the one of the job on this host that says the text, whatever its numbers:
 * the first that has it to say, and that one again. */
bool ibshift_once_a_host(uint32_t job, const char *text);

/* A dead peer fails every collective with it: it is told of once, not each time. */
bool ibshift_is_news(uint32_t peer, int status);

/* Why a collective with a peer has failed: its status, in words. */
const char *ibshift_cause_text(int status);

/* A name that the user gave, such as a communicator's: no control characters are left in text. */
void ibshift_make_plain(char *text);

#endif
