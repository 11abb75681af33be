/* The engine and the path of one request. */
#ifndef SOFTHCA_RUN_H
#define SOFTHCA_RUN_H

#include "run/copy.h"
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

/* Sends one request on its way (exec.c, datagram.c). */
enum verdict exec_connected(struct run *run, struct shm_wqe *wqe);
enum verdict exec_datagram(struct run *run, struct shm_wqe *wqe);

/* The request's own memory, checked for `access`; false: wqe->status has the local error. */
bool exec_gather(const struct shm_qp *qp, struct shm_wqe *wqe, uint32_t access, struct pieces *p);

/* Adversarial mode: what a READ or an atomic brings comes when it completes (until then its buffer
   holds rubbish), so that requests after it that are not fenced overtake it. */
bool exec_is_late(const struct shm_wqe *wqe);
void exec_bring_late(struct run *run, struct shm_wqe *wqe);

/* Adversarial mode: the oldest request waits for its time, but a tail of its bytes lands now. */
void exec_early(struct run *run, struct shm_wqe *wqe);
/* --swap: writes up to `end` that are not the next to land may land now. */
void exec_swap(struct run *run, uint64_t end);
/* On a wire: half of a long write's time is over, all of it but the last packet may land. */
void exec_ahead(struct run *run, struct shm_wqe *wqe);

/* Hands a receive completion over: at once, or with the request when a model is on. */
void exec_deliver(struct run *run, struct shm_wqe *wqe, struct shm_cqe *e);

/* The receiving end of a message, worked by whoever runs the source's queue. */
struct receive {
    uint32_t qp;  /* the target */
    uint32_t srq; /* where the entry came from, SHM_NONE = the queue pair's own */
    uint32_t resets;
    uint64_t wr_id;
    struct pieces to;
    bool bad_key; /* a piece of the entry is not registered for writing */
};

/* Takes the next receive of a queue pair. False: there is none. */
bool receive_take(uint32_t qp, struct receive *r);
/* Looks at it and leaves it there; nobody can say that of a shared queue. */
bool receive_peek(uint32_t qp, struct receive *r);

/* The entry's completion, without status and data of the message. */
void receive_fill(const struct receive *r, struct shm_cqe *e);

/*
 * The engine: runs the send queues. A request goes through three positions of its queue pair, each
 * in order: landed (its data is where it belongs), received (the target's completion is visible),
 * done (its own completion is visible). Without a model all three follow at once, inside post_send;
 * else a position waits for its time, for a retry, or for the receiver, and the queue pair is
 * listed as pending with both processes (pending.h).
 */

/* Runs what can run. run_locked: the sq_lock is held and a section is open; afterwards, with the
   lock dropped, run_after must follow, still in the section. */
void run_locked(struct run *run, uint32_t index);
void run_after(struct run *run);
void run_queue(uint32_t index);
void run_try(uint32_t index); /* unless somebody else runs it just now */

#endif
