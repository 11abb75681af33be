/*
 * A plan is what one rank does in one collective: rounds of steps, emitted on demand (plan/alg.h),
 * never stored. Buffers are symbolic arrays of blocks; the executor knows sizes and addresses:
 *
 *   collective                 SEND          RECV              a block is
 *   barrier                    -             -                 -
 *   bcast                      -             the vector, all   a piece of the vector
 *   scatter                    P, root       1                 what one rank gets
 *   gather                     1             P, root           what one rank gives
 *   allgather                  1             P                 what one rank gives
 *   alltoall                   P             P                 what one rank gives another
 *   neighbor_allgather         1             the sources       what one rank gives
 *   neighbor_alltoall          destinations  the sources       what goes along an edge (neighbors.h)
 *   reduce                     the vector    the vector, root  a piece of the vector
 *   allreduce, scan, exscan    the vector    the vector        a piece of the vector
 *   reduce_scatter(_block)     P             1                 what one rank gets
 *
 * TMP is scratch; alg.h says how many blocks it has and how large each is. SEND is never written.
 * A vector is cut into pieces by ibshift_piece(); no element is ever split.
 *
 * Allgather ring on 4 ranks, rank 2, round 1. In round 0 it sent its own block to rank 3 and posted
 * the receive of block 1; now it passes that block on while block 0 comes in:
 *
 *   STEP_RECV  buf RECV  first 0  count 1  peer 1  tag 1  need 0       RECV  | 0 | 1 | 2 | 3 |
 *   STEP_SEND  buf RECV  first 1  count 1  peer 3  tag 1  need 1   from 1 ->'    '-> to 3, when the
 *                                                                        receive of round 0 is in
 */
#ifndef IBSHIFT_PLAN_STEP_H
#define IBSHIFT_PLAN_STEP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    IBSHIFT_RANKS_MAX = 1 << 24,
    IBSHIFT_SEGMENTS_MAX = 1 << 20,
    IBSHIFT_RADIX_MAX = 16,
    IBSHIFT_LEADERS_MAX = 1024,
    IBSHIFT_ROUND_STEPS = 64,   /* no round of any algorithm has more steps */
    IBSHIFT_TAGS_MAX = 1 << 28, /* ibshift_step_key() has room for no more */
};

enum ibshift_kind {
    IBSHIFT_STEP_RECV,        /* peer -> buf[first, first + count) */
    IBSHIFT_STEP_SEND,        /* buf[first, first + count) -> peer */
    IBSHIFT_STEP_COPY,        /* buf[first...] = src[from...] */
    IBSHIFT_STEP_REDUCE,      /* buf[first...] = src[from...] op with[beside...] */
    IBSHIFT_STEP_REDUCE_AFTER /* buf[first...] = with[beside...] op src[from...]: src, TMP, is lost */
};

enum ibshift_buffer { IBSHIFT_SEND, IBSHIFT_RECV, IBSHIFT_TMP, IBSHIFT_BUFFERS };

enum ibshift_stride_side {
    IBSHIFT_CONTIGUOUS,
    IBSHIFT_STRIDED_SOURCE, /* a copy that packs */
    IBSHIFT_STRIDED_TARGET  /* a copy that unpacks */
};

/*
 * Sends and receives are contiguous ranges that never wrap. A copy may have one strided side: count
 * blocks in runs of `run`, the runs' starts `stride` blocks apart (run 1, stride -1 reverses).
 *
 * A reduction's operand `with` is mostly its target. Where a rank's own comes in, it is SEND: then
 * nothing has to be copied ahead, if the operator has a function of three buffers (a program's own
 * has none: its operand is copied then). In place, SEND is where the target is.
 *
 * need:  receives, copies and reductions of rounds < need are complete before the step starts.
 * drain: sends of rounds < drain are complete before the step starts: it overwrites what they read.
 * Both are at most the step's own round. ready.h is the rule, walk.h the engine that all share.
 *
 * Matching: (sender, tag, part) is unique among the messages that a rank gets in a plan, and both
 * ends compute the same; ibshift_step_key() is what the wire carries. Between two ranks, sends and
 * receives come in the same order, keys ascending. The tag is the round as the literature draws it,
 * the same on all ranks; the round that emit() counts is the rank's own. A message whose size is
 * zero is neither sent nor awaited, unless its count is 0 as well (barrier).
 */
struct ibshift_step {
    uint8_t kind;
    uint8_t buf;
    union {
        uint8_t part; /* sends, receives */
        uint8_t src;  /* copies, reductions */
    };
    union {
        uint8_t strided; /* copies; of messages contiguous */
        uint8_t with;    /* reductions */
    };
    uint32_t first;
    uint32_t count;
    union {
        uint32_t peer;
        uint32_t from;
    };
    union {
        uint32_t tag;
        uint32_t run;
        uint32_t beside; /* reductions: first block of `with` */
    };
    union {
        int32_t stride;
        uint32_t is_cast; /* messages: with the others of its key one datagram to a group */
    };
    uint32_t need;
    uint32_t drain;
};
static_assert(sizeof(struct ibshift_step) <= 32,
              "emission writes one step with two 16-byte stores");

struct ibshift_order;
struct ibshift_stages;
struct ibshift_nodes;
struct ibshift_neighbors;
struct ibshift_listed;

/*
 * All that a plan depends on. Pointers belong to the caller and outlive every use.
 * radix: messages that a rank sends in one round. Trees and Bruck have base radix + 1; 1: binomial.
 * split: in scatter and gather "split", split[m] of m blocks go to the other half, 0 < split[m] <
 * m.
 */
struct ibshift_plan {
    uint32_t ranks;
    uint32_t root;
    uint32_t radix;
    uint32_t segments;  /* pieces of a pipelined vector */
    uint32_t leaders;   /* ranks of a node that speak to other nodes; 0: 1 */
    bool commutative;   /* the reduction's operator */
    uint32_t multicast; /* bytes that a datagram to all ranks carries; 0: there is no group */
    bool in_sequence;   /* a shift's distances are 1, 2, 3, ..., not in steps */
    const struct ibshift_order *order;         /* plan/order.h; NULL: rank order, one rank a node */
    const struct ibshift_stages *stages;       /* plan/order.h; NULL: a shift in rank order */
    const struct ibshift_nodes *nodes;         /* plan/nodes.h; NULL: one rank a node */
    const struct ibshift_neighbors *neighbors; /* plan/neighbors.h; NULL: a ring */
    const uint32_t *split;                     /* ranks + 1 entries; NULL: m / 2 */
    const struct ibshift_listed *listed;       /* plan/listed.h; of its row alone */
};

static inline bool ibshift_step_is_local(const struct ibshift_step *step)
{
    return step->kind > IBSHIFT_STEP_SEND;
}

/* Block i (0 <= i < count) of a strided side that starts at block first. */
static inline uint32_t ibshift_step_strided_block(const struct ibshift_step *step, uint32_t first,
                                                  uint32_t i)
{
    return first + (uint32_t)((int32_t)(i / step->run) * step->stride) + i % step->run;
}

/* Of a local step: the blocks from its i-th on that are one run on both sides; returns how many. */
static inline uint32_t ibshift_step_run(const struct ibshift_step *step, uint32_t i,
                                        uint32_t *first, uint32_t *from)
{
    *first = step->first + i;
    *from = step->from + i;
    if (step->kind != IBSHIFT_STEP_COPY || step->strided == IBSHIFT_CONTIGUOUS) {
        return step->count - i;
    }
    if (step->strided == IBSHIFT_STRIDED_TARGET) {
        *first = ibshift_step_strided_block(step, step->first, i);
    } else {
        *from = ibshift_step_strided_block(step, step->from, i);
    }
    return step->run < step->count - i ? step->run : step->count - i;
}

/* What the wire header carries to name a message within a collective. */
static inline uint32_t ibshift_step_key(const struct ibshift_step *step)
{
    return step->tag << 4 | step->part;
}

/* Piece index of a vector of n elements cut into `pieces`: the first n % pieces are one element
 * larger. */
static inline void ibshift_piece(uint64_t n, uint32_t pieces, uint32_t index, uint64_t *offset,
                                 uint64_t *length)
{
    uint64_t share, larger;

    if (pieces == 1) { /* most vectors: two divisions less */
        *offset = index * n;
        *length = n;
        return;
    }
    share = n / pieces;
    larger = n % pieces;
    *offset = index * share + (index < larger ? index : larger);
    *length = share + (index < larger);
}

#endif
