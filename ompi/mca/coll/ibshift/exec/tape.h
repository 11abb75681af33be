#ifndef IBSHIFT_EXEC_TAPE_H
#define IBSHIFT_EXEC_TAPE_H

/*
 * A short plan, unrolled once and resolved: one array of steps in one order, each ready when it
 * comes, with peers, tags, lengths and places in the buffers. A collective that comes again runs
 * down its tape: a send leaves now, a receive is there, a local step is done. Nothing is posted,
 * so a step that cannot be done now has not begun, and the engine goes on from there
 * (ibshift_engine_take_over). A tape is a cache, never a source: it is made from the same
 * emission, by the same walk, as the op that would run in its place.
 *
 * One order is enough: `need` and `drain` name prefixes of rounds, so in which order the receives
 * of a prefix are looked at changes nothing, and a short send is complete when it has left.
 */

#include <string.h>

#include "exec/op.h"

enum {
    IBSHIFT_TAPE_STEPS = 128,     /* longer plans have no tape */
    IBSHIFT_TAPE_TMP = 64 * 1024, /* nor those with more scratch */
};

enum ibshift_tape_action {
    IBSHIFT_TAPE_NOTHING, /* a message that nobody sends */
    IBSHIFT_TAPE_SEND,
    IBSHIFT_TAPE_RECV,
    IBSHIFT_TAPE_COPY,
    IBSHIFT_TAPE_REDUCE,
    IBSHIFT_TAPE_REDUCE_AFTER, /* the operator is not commutative: from is the right operand */
};

struct ibshift_tape_step {
    uint8_t action; /* enum ibshift_tape_action */
    uint8_t which;  /* enum ibshift_class */
    uint8_t buf, src;
    bool is_last;         /* of its step of the plan: a copy with gaps is several */
    uint8_t round, index; /* which step of the plan it is */
    union {
        uint32_t tag;
        int32_t beside; /* of a reduction: bytes behind the base of with */
    };
    uint32_t length;
    int32_t at; /* bytes behind the base of buf */
    union {
        int32_t from;  /* the same of src */
        uint32_t peer; /* of the net: of a message */
    };
    union {
        struct ibshift_net_channel *channel; /* to the peer */
        uint8_t with;                        /* of a reduction */
    };
};
static_assert(sizeof(struct ibshift_tape_step) == 32, "two to a cache line");
static_assert(IBSHIFT_TAPE_STEPS <= UINT8_MAX + 1, "a round without a step ends no plan");

struct ibshift_tape {
    uint32_t count;
    uint32_t sends, recvs;
    uint64_t send_bytes;
    size_t tmp; /* bytes of TMP */
    struct ibshift_tape_step steps[];
};

/* One run. Written by the caller; next grows with every step that is done. */
struct ibshift_tape_run {
    const struct ibshift_tape *tape;
    char *base[IBSHIFT_BUFFERS];
    union {
        struct {
            uint32_t comm, seq; /* comm: with the badge (net.h) */
        };
        uint64_t comm_seq; /* of both, written at once: they are read so */
    };
    uint32_t next;
    size_t element;
    ibshift_reduce_fn reduce;
    void *reduce_context;
};

/* NULL: this op can have none, or there is no memory. tmp: bytes of TMP. For free(); of no use after the
 * net, and the caller may call that. */
struct ibshift_tape *ibshift_tape_make(const struct ibshift_op_params *params,
                                       struct ibshift_net *net, size_t tmp);

/* Of the first steps of a tape. */
void ibshift_tape_count(const struct ibshift_tape *tape, uint32_t steps,
                        struct ibshift_engine_stats *stats);

static inline void ibshift_tape_reduce(const struct ibshift_tape_run *run,
                                       const struct ibshift_tape_step *step)
{
    char *to = run->base[step->buf] + step->at, *from = run->base[step->src] + step->from;
    char *with = run->base[step->with] + step->beside;
    size_t elements;

    if (step->length == 0) {
        return;
    }
    elements = step->length / run->element;
    if (step->action == IBSHIFT_TAPE_REDUCE) {
        run->reduce(run->reduce_context, from, with, to, elements);
        return;
    }
    ibshift_reduce_onto(run->reduce, run->reduce_context, with, from, to, elements, step->length);
}

/* From 8 to 16 bytes: both ends are read before one is written, for they may overlap. */
static inline void ibshift_tape_copy_words(char *to, const char *from, uint32_t length)
{
    uint64_t first, last;

    memcpy(&first, from, sizeof(first));
    memcpy(&last, from + length - sizeof(last), sizeof(last));
    memcpy(to, &first, sizeof(first));
    memcpy(to + length - sizeof(last), &last, sizeof(last));
}

static inline void ibshift_tape_copy(const struct ibshift_tape_run *run,
                                     const struct ibshift_tape_step *step)
{
    char *to = run->base[step->buf] + step->at, *from = run->base[step->src] + step->from;

    if (step->length - sizeof(uint64_t) <= sizeof(uint64_t)) {
        ibshift_tape_copy_words(to, from, step->length);
    } else if (to != from && step->length > 0) {
        memmove(to, from, step->length);
    }
}

/* Does what can be done now. True: all of it. */
static inline bool ibshift_tape_play(struct ibshift_tape_run *run)
{
    const struct ibshift_tape_step *first = run->tape->steps, *end = first + run->tape->count,
                                   *step = first + run->next;
    uint64_t comm_seq = run->comm_seq;
    bool is_done = true;

    for (; step != end; step++) {
        if (step->action == IBSHIFT_TAPE_SEND) {
            is_done = step->channel->try_send(step->channel, comm_seq, step->tag,
                                              run->base[step->buf] + step->at, step->length);
        } else if (step->action == IBSHIFT_TAPE_RECV) {
            is_done = step->channel->try_recv(step->channel, comm_seq, step->tag,
                                              run->base[step->buf] + step->at, step->length);
        } else if (step->action == IBSHIFT_TAPE_COPY) {
            ibshift_tape_copy(run, step);
        } else if (step->action != IBSHIFT_TAPE_NOTHING) {
            ibshift_tape_reduce(run, step);
        }
        if (!is_done) {
            break;
        }
    }
    run->next = (uint32_t)(step - first);
    return is_done;
}

#endif
