#ifndef IBSHIFT_EXEC_OP_H
#define IBSHIFT_EXEC_OP_H

/*
 * One running collective: a walk over its plan that turns steps into messages, copies and
 * reductions. The engine (exec/engine.h) turns the crank; the caller brings the memory, once, for
 * any number of runs. Blocking, nonblocking and persistent collectives are all this.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "plan/alg.h"
#include "exec/blocks.h"
#include "net/net.h"
#include "plan/walk.h"

struct ibshift_gaps;
struct ibshift_op;
struct ibshift_opening;

/* target[i] = left[i] op right[i]; target is right, or neither. Then it may still lie across right,
 * which is lost then. */
typedef void (*ibshift_reduce_fn)(void *context, const void *left, void *right, void *target,
                                  size_t elements);

/* The same where target may be left: then the result comes to be in right first, which is scratch. */
static inline void ibshift_reduce_onto(ibshift_reduce_fn reduce, void *context, const char *left,
                                       char *right, char *target, size_t elements, size_t bytes)
{
    reduce(context, left, right, target == left ? right : target, elements);
    if (target == left) {
        memcpy(target, right, bytes);
    }
}

/* The caller's side: written before the op is started, left alone until it has ended. */
struct ibshift_op_params {
    const struct ibshift_alg *alg;
    struct ibshift_plan plan; /* has passed ibshift_alg_check() */
    uint32_t rank;
    uint32_t window;
    size_t piece;          /* of long messages, as in net.h */
    bool is_attended;      /* all ranks wait inside the call until the end */
    const uint32_t *peers; /* rank to peer of the net; NULL: the same */
    const uint32_t *names; /* rank to what people call it; NULL: the same */
    uint32_t comm;         /* for the message keys */
    uint32_t badge;        /* in its place above the communicator (net.h) */
    uint32_t standing;     /* of its messages, as in net.h */
    bool is_tmp_standing;  /* and TMP is at the same place each time that it has this number */
    bool is_stage;         /* one of a collective of several ops, which are not counted */
    uint32_t tags;         /* added to them in an op that runs inside another; 0: it does not */
    struct ibshift_blocks blocks[IBSHIFT_BUFFERS];
    struct ibshift_net_mem *mem[IBSHIFT_BUFFERS]; /* registrations of the buffers, or NULL */
    size_t element;                               /* bytes of an element that is reduced */
    ibshift_reduce_fn reduce;
    void *reduce_context;
    struct ibshift_opening *opening; /* NULL: messages wait for grants */
    struct ibshift_cast *cast;       /* of messages of a row that casts, as in net.h; NULL: none */
    size_t cast_most;
    struct ibshift_gaps *gaps; /* NULL: the blocks are all there is */
};

/* Whose blocks say how large a block of TMP is. */
static inline const struct ibshift_blocks *
ibshift_op_tmp_sizes(const struct ibshift_op_params *params)
{
    enum ibshift_collective collective = params->alg->collective;
    bool is_recv = collective == IBSHIFT_BCAST || collective == IBSHIFT_SCATTER ||
                   collective == IBSHIFT_ALLGATHER;

    return &params->blocks[is_recv ? IBSHIFT_RECV : IBSHIFT_SEND];
}

struct ibshift_engine_stats {
    uint64_t sends;
    uint64_t send_bytes;
    uint64_t recvs;
    uint64_t again; /* posts that the net had no room for */
    uint64_t ops;
    uint64_t failed_ops;
    uint64_t taped; /* of the collectives, those that had no op: exec/tape.h */
};

enum ibshift_op_state { IBSHIFT_OP_IDLE, IBSHIFT_OP_RUNNING, IBSHIFT_OP_DRAINING };

/* Everything below params belongs to the engine's lock, except where it says otherwise. */
struct ibshift_op {
    struct ibshift_op_params params;

    /*
     * Called once at each end, outside of all locks; may start the op again, detach it or free it.
     * NULL: someone watches ibshift_op_is_done().
     */
    void (*ended)(struct ibshift_op *op);
    void *owner; /* the caller's */

    /*
     * The result, once ended: 0 or the status of net.h and the peer of the net it happened with: one of the communicator's, but
     * maybe none of the op's, which may be among some of its ranks only.
     */
    int status;
    uint32_t failed_peer;
    int root; /* of a failure: the status that it began with, maybe on another rank */
    uint32_t lacked, lacked_first; /* of one by the deadline: ibshift_opening_lacks() */

    _Atomic(enum ibshift_op_state) state; /* back to IDLE is the engine's last touch */
    uint32_t seq;
    uint32_t slot; /* in the engine's table, part of the cookies */
    bool is_queued;
    struct ibshift_op *next_queued;
    struct ibshift_op *next_active, *previous_active;

    uint32_t moves; /* grows with every step; what the clock looks at */
    uint32_t moves_seen;
    uint64_t idle; /* ns since the last move, as far as anybody looked */
    uint64_t probed;
    uint32_t asked; /* other members, in turn */

    struct ibshift_walk walk;
};
static_assert(sizeof(struct ibshift_op) < 4096, "a program may keep thousands of them");

/* Once for the op's memory, before anything else; ibshift_engine_detach() frees what it has come to
 * own. */
void ibshift_op_init(struct ibshift_op *op);

/* True once all messages of the last run are over and status is set. For ops without ended(). */
static inline bool ibshift_op_is_done(struct ibshift_op *op)
{
    return atomic_load_explicit(&op->state, memory_order_acquire) == IBSHIFT_OP_IDLE;
}

/* The op's rank as a peer of the net. */
static inline uint32_t ibshift_op_peer(const struct ibshift_op *op, uint32_t rank)
{
    return op->params.peers != NULL ? op->params.peers[rank] : rank;
}

/* The first word of its messages' keys. */
static inline uint32_t ibshift_op_word(const struct ibshift_op *op)
{
    return op->params.comm | op->params.badge;
}

/* An op that runs inside another one (exec/opening.h) has the other's place in the engine's
 * table; bits of its messages' tags and of the class in its cookies tell the two apart. */
enum { IBSHIFT_CHILD_CLASS = 0x80 };
#define IBSHIFT_CHILD_TAG (UINT32_C(1) << 31)

static inline bool ibshift_op_is_child(const struct ibshift_op *op)
{
    return op->params.tags != 0;
}

/* What the net gives back with an event: slot, class and flight. */
static inline uint64_t ibshift_op_cookie(const struct ibshift_op *op, enum ibshift_class which,
                                         uint32_t flight)
{
    uint32_t child = ibshift_op_is_child(op) ? IBSHIFT_CHILD_CLASS : 0;

    return (uint64_t)op->slot << 16 | (uint64_t)(which | child) << 8 | flight;
}

#endif
