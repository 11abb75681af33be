/*
 * Bounce mode, for systems that refuse process_vm_readv/writev between processes: every process has
 * a thread, its agent, that copies between its own memory and a piece of the shared file on
 * request. The requester waits for it, so copies stay one-sided for the program. The agent's copies
 * are done by preadv and pwritev on the file: memory that is not there is an error, not a crash.
 */
#ifndef SOFTHCA_AGENT_H
#define SOFTHCA_AGENT_H

#include "run/pieces.h"

/* The same contract as copy_pieces. */
int agent_copy(const struct pieces *from, const struct pieces *to);

/* When a process attaches and when it ends. 0 or -errno. */
int agent_start(void);
void agent_stop(void);
void agent_forget(void);

#endif
