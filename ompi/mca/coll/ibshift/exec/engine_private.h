#ifndef IBSHIFT_EXEC_ENGINE_PRIVATE_H
#define IBSHIFT_EXEC_ENGINE_PRIVATE_H

#include <pthread.h>

#include "exec/engine.h"

/* lock covers all of it. */
struct ibshift_engine {
    pthread_mutex_t lock;
    struct ibshift_net *net;
    struct ibshift_pages *pages, *own_pages;
    struct ibshift_engine_options options;
    struct ibshift_engine_stats stats;
    struct ibshift_op **table; /* by slot; a free slot is NULL */
    uint32_t slots;
    struct ibshift_op *active;
    struct ibshift_op *queue_first; /* ops that may have something to start */
    struct ibshift_op *queue_last;
    struct ibshift_op *ended_first; /* to be told once the lock is free */
    uint32_t calls;
    uint64_t looked; /* when the clock was read last */
};

/* slot, class and index of a flight */
static inline uint64_t ibshift_cookie(const struct ibshift_op *op, enum ibshift_class which,
                                      uint32_t index)
{
    return (uint64_t)op->slot << 16 | (uint64_t)which << 8 | index;
}

void ibshift_engine_trace(struct ibshift_engine *engine, const struct ibshift_op *op,
                          const struct ibshift_step *step, uint32_t round);

#endif
