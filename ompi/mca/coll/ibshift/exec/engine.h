#ifndef IBSHIFT_EXEC_ENGINE_H
#define IBSHIFT_EXEC_ENGINE_H

/*
 * The progress engine of one net: any number of collectives in flight, from any number of threads.
 *
 * One lock covers the net and all ops; while there is one thread, what runs often does without.
 * start() takes it; progress() returns at once when another
 * thread has it, for then that thread makes the progress. Reductions run under it; ended() does
 * not. Nobody else calls the net while an engine has it, except where net.h allows it.
 */

#include "exec/tape.h"

struct ibshift_engine_options {
    uint64_t patience; /* ns without progress until an op probes the peers it waits for; 0: never */
    uint64_t deadline; /* ns without progress until an op fails with -ETIME; 0: never */
    uint32_t calls;    /* of progress() until it reads the clock; 0: enough that it costs nothing */
    void (*trace)(void *context, const struct ibshift_op *op, const char *line); /* each step */
    void *trace_context;
    const bool *has_threads;     /* whether several may call, now; NULL: they may */
    struct ibshift_pages *pages; /* shared with engines of the same thread; NULL: its own */
};

struct ibshift_engine *ibshift_engine_create(struct ibshift_net *net,
                                             const struct ibshift_engine_options *options);

/* No op may be attached. The net stays the caller's. */
void ibshift_engine_free(struct ibshift_engine *engine);

/* Gives the op its place in the table. 0 or -ENOMEM. Nothing else allocates. */
int ibshift_engine_attach(struct ibshift_engine *engine, struct ibshift_op *op);
void ibshift_engine_detach(struct ibshift_engine *engine, struct ibshift_op *op);

/* The communicator begins here. */
void ibshift_engine_enter(struct ibshift_engine *engine, uint32_t comm);

/* Nothing more is started on the communicator, and what runs fails: peer and status say why. */
void ibshift_engine_give_up(struct ibshift_engine *engine, uint32_t comm, uint32_t peer,
                            int status);

/* The communicator ends here: its number may come back with another one. Whether anything has failed
   in the net, so that peers may still write where its grants stood. */
bool ibshift_engine_forget(struct ibshift_engine *engine, uint32_t comm);

/* seq: the number of the collective on params.comm. The op may have ended when this returns. */
void ibshift_engine_start(struct ibshift_engine *engine, struct ibshift_op *op, uint32_t seq);

/*
 * A collective without an op, as far as it can be done at once. True: all of it; false: call again,
 * or let an op go on. Nothing is begun while ops are in flight, for it makes no progress for them.
 */
bool ibshift_engine_sprint(struct ibshift_engine *engine, struct ibshift_tape_run *run);

/* Starts an op in the place of the run, whose steps it does not do again. TMP has been copied. */
void ibshift_engine_take_over(struct ibshift_engine *engine, struct ibshift_op *op,
                              const struct ibshift_tape_run *run);

/* Whether the net can run tapes, and the longest message that they have; 0: it cannot. */
size_t ibshift_engine_tape_limit(const struct ibshift_engine *engine);

/* NULL: this op can have none, or there is no memory. tmp: bytes of TMP. For free(); of no use after the
 * net. */
struct ibshift_tape *ibshift_engine_tape(struct ibshift_engine *engine,
                                         const struct ibshift_op_params *params, size_t tmp);

/* For who has other work after the start: what looking on would let be posted, in bytes that peers have yet to grant and messages in
   which they say that they have begun; 0: nothing. It falls as they come. */
uint64_t ibshift_engine_held_up(struct ibshift_engine *engine, const struct ibshift_op *op);

/* For what the net asks its owner: whether a collective of the communicator runs whose number is meant. */
bool ibshift_engine_runs(const struct ibshift_engine *engine, uint32_t comm,
                         bool (*is_meant)(uint32_t number, uint32_t seq), uint32_t seq);

/* Bounded work; returns the number of things that happened, so 0 means: do something else. */
int ibshift_engine_progress(struct ibshift_engine *engine);

/*
 * The own time (net.h) at which an op wants to be turned though nothing has happened by then, or
 * UINT64_MAX: for simulators, and for progress loops that sleep. Holds until the next call of
 * progress() that returns 0.
 */
uint64_t ibshift_engine_wake_at(struct ibshift_engine *engine);

/* Between the two the net is the caller's to look at. */
void ibshift_engine_lock(struct ibshift_engine *engine);
void ibshift_engine_unlock(struct ibshift_engine *engine);

/* A collective of several ops has ended. */
void ibshift_engine_count(struct ibshift_engine *engine, int status);

struct ibshift_engine_stats ibshift_engine_stats(struct ibshift_engine *engine);

#endif
