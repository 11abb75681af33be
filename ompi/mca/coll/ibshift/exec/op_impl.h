#ifndef IBSHIFT_EXEC_OP_IMPL_H
#define IBSHIFT_EXEC_OP_IMPL_H

/* What the engine does with an op, under its lock. */

#include "exec/opening.h"
#include "exec/tape.h"

/* Of the engine, for its ops. */
struct ibshift_exec {
    struct ibshift_net *net;
    struct ibshift_pages *pages;
    void (*trace)(void *context, const struct ibshift_op *op, const char *line); /* or NULL */
    void *trace_context;
    struct ibshift_engine_stats stats;
    bool is_given_up; /* a communicator was: ops may run on it that have yet to fail */
};

static inline enum ibshift_op_state ibshift_op_state(const struct ibshift_op *op)
{
    return atomic_load_explicit(&op->state, memory_order_relaxed);
}

static inline void ibshift_op_set_state(struct ibshift_op *op, enum ibshift_op_state state)
{
    atomic_store_explicit(&op->state, state, memory_order_relaxed);
}

/* The op that may run inside this one, or NULL. */
static inline struct ibshift_op *ibshift_op_child(const struct ibshift_op *op)
{
    return op->params.opening != NULL ? &op->params.opening->child : NULL;
}

/* The one that does now. */
static inline struct ibshift_op *ibshift_op_running_child(const struct ibshift_op *op)
{
    struct ibshift_op *child = ibshift_op_child(op);

    return child != NULL && ibshift_op_state(child) != IBSHIFT_OP_IDLE ? child : NULL;
}

/* The end of a flight. */
static inline void ibshift_op_land(struct ibshift_op *op, enum ibshift_class which, uint32_t index)
{
    ibshift_walk_complete(&op->walk, which, index);
    op->moves++;
}

/* run: the steps of a tape that have been done, or NULL. */
void ibshift_op_begin(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t seq,
                      const struct ibshift_tape_run *run);

/* Starts what may start, within bounds; true: call again after the next poll. */
bool ibshift_op_advance(struct ibshift_op *op, struct ibshift_exec *exec);

/* exec/op_local.c: a copy or a reduction; 0, or the op has failed. */
int ibshift_op_run_local(struct ibshift_op *op, struct ibshift_exec *exec,
                         const struct ibshift_step *step);

/* News of a message of the op; index and class come from the cookie. */
void ibshift_op_event(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t which,
                      uint32_t index, int status);

/* Cancels the op's messages, gives its communicator up and tells everyone who may still wait for
   this rank. */
void ibshift_op_fail(struct ibshift_op *op, struct ibshift_exec *exec, uint32_t peer, int status);

/* Whether the net has given the op's communicator up: then the op fails with the same peer. */
bool ibshift_op_fail_if_given_up(struct ibshift_op *op, struct ibshift_exec *exec);

/* Nothing in flight, and nothing left to do. */
bool ibshift_op_is_over(const struct ibshift_op *op);

/* A rank that the op waits for, the one that was posted first as far as known. */
uint32_t ibshift_op_awaited_rank(const struct ibshift_op *op);

/* Probes and asks the peers of all messages in flight, and one more member. */
void ibshift_op_probe(struct ibshift_op *op, struct ibshift_net *net);

#endif
