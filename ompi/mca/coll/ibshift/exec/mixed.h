/*
 * A v-variant of which no rank knows all sizes, among ranks that share nodes: blocks of up to `most` bytes go by node, longer ones
 * from rank to rank. Both ranks of a block know its size, so they agree without a message, and a leader holds no more than its
 * blocks times `most`. Up to four ops, one after the other, each with a number of its own:
 *
 *     TELL    the ranks of a node tell its leaders the sizes of their blocks
 *     CHECK   leaders tell each other what their ranks send, to compare it with what is awaited (of a root: with its counts)
 *     SHORT   the plan by node
 *     LONG    the flat plan
 *
 * A rank that takes no part in one goes on to the next. A persistent call tells sizes once: later starts begin with SHORT.
 */
#ifndef IBSHIFT_EXEC_MIXED_H
#define IBSHIFT_EXEC_MIXED_H

#include "exec/op.h"

enum ibshift_mixed_stage {
    IBSHIFT_MIXED_TELL,
    IBSHIFT_MIXED_CHECK,
    IBSHIFT_MIXED_SHORT,
    IBSHIFT_MIXED_LONG,
    IBSHIFT_MIXED_STAGES
};

enum ibshift_mixed_memory {
    IBSHIFT_MIXED_WORDS,   /* sizes as they are told */
    IBSHIFT_MIXED_LISTS,   /* of blocks and peers */
    IBSHIFT_MIXED_OFFSETS, /* of TMP */
    IBSHIFT_MIXED_DATA,    /* TMP, and blocks that are packed */
    IBSHIFT_MIXED_MEMORIES
};

/* Blocks with a size and a place each, in bytes. */
struct ibshift_mixed_side {
    char *base;
    uint32_t blocks; /* 0: this rank has no such side */
    const size_t *lengths;
    const ptrdiff_t *places;
};

/* One rank sends another so many bytes, which awaits so many; 2^32 - 1: that or more. */
struct ibshift_mixed_unlike {
    uint32_t from, to;
    uint32_t sent, awaited;
};

struct ibshift_mixed {
    /* The caller's. Both have all but the blocks. */
    struct ibshift_op_params by_node, flat;
    size_t most; /* below 2^32 - 1 */
    struct ibshift_mixed_side sides[2];
    void *(*reserve)(void *owner, enum ibshift_mixed_memory which, size_t bytes); /* or NULL */
    void *owner;

    int stage;     /* that runs */
    bool has_told; /* in an earlier run; the sizes are still the same */
    struct ibshift_mixed_unlike unlike;

    /* Its own: where the rank is, and its memory. */
    uint32_t leaders, node, place, size, team; /* size: ranks of the node */
    uint32_t start, end, sources;              /* the team's places; ranks of its number's teams */
    bool leads;
    uint32_t *out, *told,
        *checked;       /* words: to others, from the node's ranks, from other leaders */
    size_t *rows;       /* where in told those of a rank of the node begin, by place */
    size_t *sent, *got; /* offsets of the op that tells, in words */
    uint32_t *peers, *names;
    uint32_t *source_of;        /* of teams of one number, by rank */
    size_t *lengths[2], *heard; /* of the stage's blocks; of all ranks' blocks, of a root */
    ptrdiff_t *packed[2];
    bool is_packed[2];
    struct ibshift_blocks tmp;
    size_t tmp_bytes;
    char *data;
};

/* Before each run. False: there is no memory. */
bool ibshift_mixed_begin(struct ibshift_mixed *mixed);

/*
 * The stage that ran has ended well, or none has run yet: makes params those of the next one that the rank takes part in, whose
 * number is that of the run plus mixed->stage. 1; 0: there is none, the run is over; -EMSGSIZE: sizes are unlike, as mixed->unlike
 * says; -ENOMEM.
 */
int ibshift_mixed_next(struct ibshift_mixed *mixed, struct ibshift_op_params *params);

#endif
