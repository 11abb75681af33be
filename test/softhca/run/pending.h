/*
 * Queue pairs with requests that wait (for a time, a retry, a receive) are listed with both
 * processes, so that the next verbs call of either resumes them. A thread of the source's process
 * looks at them a thousand times a second, for programs that sleep; it exists from the first
 * request that waits.
 */
#ifndef SOFTHCA_PENDING_H
#define SOFTHCA_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "shm/shm.h"

/* Who resumes a queue pair of the lists, when its lock is free; before anything is listed. */
void pending_resume_by(void (*run)(uint32_t qp));

/* There may be something to do for the queue pair at `when`; from any process. */
void pending_due_by(struct shm_qp *qp, uint64_t when);
/* Around a run, under the queue pair's sq_lock: what is due next is found anew. Until the end it is
   due as before, for the case that whoever runs it dies. */
void pending_begin(struct shm_qp *qp);
void pending_end(struct shm_qp *qp);

/* To the error state, with an asynchronous event (0: none), and listed for whoever next runs it,
   who flushes its queues: for callers that may hold a receive queue's lock. False: it was there. */
bool pending_break(uint32_t qp, uint32_t event);

/* Under the queue pair's sq_lock. */
void pending_update(uint32_t qp, bool is_unfinished);
void pending_drop(uint32_t qp);
/* The lists of a dead process, whose place another will have. */
void pending_clear(uint32_t proc);

/* Resumes what is due of the calling process. Not inside a section, no lock held. */
void pending_run(void);

/* At the end of the process, and in a child after fork. */
void pending_stop(void);
void pending_forget(void);

#endif
