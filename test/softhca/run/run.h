/*
 * The engine: runs the send queues. A request goes through three positions of its queue pair, each
 * in order: landed (its data is where it belongs), received (the target's completion is visible),
 * done (its own completion is visible). Without a model all three follow at once, inside post_send;
 * else a position waits for its time, for a retry, or for the receiver, and the queue pair is
 * listed as pending with both processes (pending.h).
 */
#ifndef SOFTHCA_RUN_H
#define SOFTHCA_RUN_H

#include "run/exec.h"

/* Runs what can run. run_locked: the sq_lock is held and a section is open; afterwards, with the
   lock dropped, run_after must follow, still in the section. */
void run_locked(struct run *run, uint32_t index);
void run_after(struct run *run);
void run_queue(uint32_t index);
void run_try(uint32_t index); /* unless somebody else runs it just now */

#endif
