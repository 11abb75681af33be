/*
 * The engine: runs the send queues. A request goes through three positions of its queue pair, each
 * in order: landed (its data is where it belongs), received (the target's completion is visible),
 * done (its own completion is visible). Without a model all three follow at once, inside post_send;
 * else a position waits for its time, for a retry, or for the receiver, and the queue pair is
 * listed as pending with both processes (pending.h).
 */
#ifndef SOFTHCA_RUN_H
#define SOFTHCA_RUN_H

#include "shm/shm.h"

/* What came of a request's journey. */
enum verdict {
    VERDICT_LANDED, /* wqe->status says how */
    VERDICT_LOST,
    VERDICT_NOT_READY, /* no receive at the target */
};

/* A run of one send queue: who else must be looked after when its lock has been dropped. */
struct run {
    uint32_t index; /* of the queue pair */
    struct shm_qp *qp;
    uint32_t hurt; /* a peer that went to the error state, SHM_NONE = none */
    uint64_t rnr_wait;
    /* Makes all target's completions of landed requests visible, before one that must not overtake. */
    void (*receive_all)(struct run *run);
};

/* Runs what can run. run_locked: the sq_lock is held and a section is open; afterwards, with the
   lock dropped, run_after must follow, still in the section. */
void run_locked(struct run *run, uint32_t index);
void run_after(struct run *run);
void run_queue(uint32_t index);
void run_try(uint32_t index); /* unless somebody else runs it just now */

/* Sends one request on its way (exec.c, datagram.c). */
enum verdict exec_connected(struct run *run, struct shm_wqe *wqe);
enum verdict exec_datagram(struct run *run, struct shm_wqe *wqe);

#endif
