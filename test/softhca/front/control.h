/*
 * The thread of softhca-run that makes faults happen: those that wait for their time, and those
 * that come through the control socket (one fault a line; each is answered by "ok", or by lines of
 * a report, or by "error: ..."; an empty line ends the answer).
 */
#ifndef SOFTHCA_CONTROL_H
#define SOFTHCA_CONTROL_H

#include "shm/shm.h"

/* Opens the socket, if a path is given: before the run starts. 0, or -errno after a message. */
int control_open(const char *path);
/* Starts the thread, in the process that waits for the command. */
int control_start(const struct shm_conf *conf);
/* Ends it, and removes the socket. */
void control_stop(void);
/* In the guard, which does not listen: at its start, and when the runner was killed. */
void control_hang_up(void);
void control_remove(void);

/* The client: says each fault, prints the answers. 0, or 2 after a message. */
int control_tell(const char *path, char **faults);

#endif
