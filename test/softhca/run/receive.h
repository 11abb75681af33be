/* The receiving end of a message, worked by whoever runs the source's queue. */
#ifndef SOFTHCA_RECEIVE_H
#define SOFTHCA_RECEIVE_H

#include "run/copy.h"
#include "shm/shm.h"

struct receive {
    uint32_t qp;  /* the target */
    uint32_t srq; /* where the entry came from, SHM_NONE = the queue pair's own */
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

#endif
