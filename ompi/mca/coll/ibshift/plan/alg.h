/*
 * One algorithm = one row: how many rounds a rank has and what each of them does, as pure functions
 * of the plan. They read only their arguments and what the plan points to, store nothing, call
 * nothing outside their file.
 *
 * Walking a plan in bounded memory:
 *     struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
 *     for (uint32_t round = 0; round < alg->rounds(plan, rank); round++) {
 *         uint32_t count = alg->emit(plan, rank, round, steps);
 *     }
 * Rounds may be emitted in any order, again, and not at all; a round may be empty. walk.h does it
 * with the window.
 */
#ifndef IBSHIFT_PLAN_ALG_H
#define IBSHIFT_PLAN_ALG_H

#include <stddef.h>

#include "plan/step.h"

enum ibshift_collective {
    IBSHIFT_BARRIER,
    IBSHIFT_BCAST,
    IBSHIFT_SCATTER,
    IBSHIFT_GATHER,
    IBSHIFT_ALLGATHER,
    IBSHIFT_ALLTOALL,
    IBSHIFT_NEIGHBOR_ALLGATHER,
    IBSHIFT_NEIGHBOR_ALLTOALL,
    IBSHIFT_REDUCE,
    IBSHIFT_ALLREDUCE,
    IBSHIFT_REDUCE_SCATTER, /* reduce_scatter_block too */
    IBSHIFT_SCAN,
    IBSHIFT_EXSCAN,
    IBSHIFT_COLLECTIVES
};

/*
 * Of scatterv and gatherv only the root knows the sizes, so what passes others' blocks on
 * (IBSHIFT_ALG_SIZES_ALL) cannot run for them: to tell the sizes first would cost another tree of
 * messages before the first byte of data. Within a node that is cheap (IBSHIFT_ALG_SIZES_NODE): such
 * rows carry blocks up to a size that all ranks know (exec/mixed.h).
 */
enum ibshift_alg_flag {
    IBSHIFT_ALG_POWER_OF_TWO = 1 << 0,     /* of ranks */
    IBSHIFT_ALG_EVEN = 1 << 1,             /* number of ranks */
    IBSHIFT_ALG_COMMUTATIVE_ONLY = 1 << 2, /* wrong for other operators */
    IBSHIFT_ALG_SIZES = 1 << 3,            /* v-variant: sizes that MPI tells a rank are enough */
    IBSHIFT_ALG_SIZES_ALL = 1 << 4,        /* v-variant once every rank knows all sizes */
    IBSHIFT_ALG_IN_PLACE = 1 << 5,         /* right when SEND and RECV overlap, see below */
    IBSHIFT_ALG_ORDER = 1 << 6,            /* reads plan->order */
    IBSHIFT_ALG_STAGES = 1 << 7,           /* reads plan->stages */
    IBSHIFT_ALG_SPLIT = 1 << 8,            /* reads plan->split */
    IBSHIFT_ALG_SEGMENTS = 1 << 9,         /* reads plan->segments */
    IBSHIFT_ALG_SINGLE = 1 << 10,     /* moves one block at a time: they need not lie in order */
    IBSHIFT_ALG_NODES = 1 << 11,      /* reads plan->nodes */
    IBSHIFT_ALG_LEADERS = 1 << 12,    /* reads plan->leaders */
    IBSHIFT_ALG_SIZES_NODE = 1 << 13, /* v-variant once leaders know the sizes of their node */
    IBSHIFT_ALG_FREE = 1 << 14,       /* no step waits for another: a pace may narrow the window */
    IBSHIFT_ALG_MULTICAST =
        1 << 16,                 /* sends of one key are one datagram: for a plan with a group */
    IBSHIFT_ALG_INNER = 1 << 15, /* reads plan->radix for trees within a node alone */
    IBSHIFT_ALG_DEEP = 1 << 17,  /* a doubling of the ranks takes a segment one rank further */
};

/* One rank sends a block to another. */
typedef void ibshift_see_pair(void *who, uint32_t from, uint32_t to);

/*
 * MPI_IN_PLACE is no plan parameter: the caller lets SEND and RECV overlap, and skips copies of
 * blocks onto themselves:
 *     allgather, gather at the root                     SEND block 0 is RECV block `rank`
 *     scatter at the root                               RECV block 0 is SEND block `root`
 *     reduce_scatter                                    RECV block 0 is SEND block 0
 *     alltoall, reduce at the root, allreduce, (ex)scan SEND block b is RECV block b
 * Rows with IBSHIFT_ALG_IN_PLACE are right that way (the checker proves it). For the others the
 * caller copies the user's buffer to scratch at every start and takes that as SEND.
 */
struct ibshift_alg {
    enum ibshift_collective collective;
    const char *name;
    const char *doc; /* one line */
    /* Rounds, messages, bytes that a rank sends: P ranks, k radix, m bytes a block, n bytes of
     * vector, S segments. */
    const char *cost;
    /* What runs when P or the operator does not fit; NULL when the row has no limits. */
    const char *instead;
    uint32_t flags;
    uint32_t radix_max; /* 0: takes no radix; else 1..radix_max */
    uint32_t (*rounds)(const struct ibshift_plan *plan, uint32_t rank);
    /* Writes at most IBSHIFT_ROUND_STEPS steps and returns their number. */
    uint32_t (*emit)(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out);
    /* How many pieces a vector is cut into; NULL: 1. */
    uint32_t (*pieces)(const struct ibshift_plan *plan);
    /* Blocks of TMP; NULL: none. */
    uint32_t (*tmp)(const struct ibshift_plan *plan, uint32_t rank);
    /* The rank or piece whose block's size a slot of TMP has; NULL: slot modulo their number. */
    uint32_t (*tmp_block)(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot);
    /* Of an all-to-all with IBSHIFT_ALG_SIZES_NODE: shows whose block is in each slot of TMP, one after the other: there are
     * many, and what they have in common is found once. */
    void (*tmp_pairs)(const struct ibshift_plan *plan, uint32_t rank, ibshift_see_pair *see,
                      void *who);
};

/* The table, grouped by collective; the first row of a collective serves every P and operator. */
extern const struct ibshift_alg *const ibshift_alg_table[];
extern const size_t ibshift_alg_count;

/* A collective on a vector (else on blocks). */
static inline bool ibshift_collective_has_vector(enum ibshift_collective collective)
{
    return collective == IBSHIFT_BCAST ||
           (collective >= IBSHIFT_REDUCE && collective != IBSHIFT_REDUCE_SCATTER);
}

static inline bool ibshift_collective_is_of_neighbors(enum ibshift_collective collective)
{
    return collective == IBSHIFT_NEIGHBOR_ALLGATHER || collective == IBSHIFT_NEIGHBOR_ALLTOALL;
}

const char *ibshift_collective_name(enum ibshift_collective collective);
/* The collective of that name, or -ENOENT. */
int ibshift_collective_find(const char *name);
/* NULL when there is none. */
const struct ibshift_alg *ibshift_alg_find(enum ibshift_collective collective, const char *name);

/* 1 + the row's place among those of its collective; 0: NULL, or none of the table. */
int ibshift_alg_place(const struct ibshift_alg *alg);

/* Blocks of a buffer on a rank, and the pieces a vector is cut into. */
uint32_t ibshift_alg_blocks(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            uint32_t rank, enum ibshift_buffer buf);
static inline uint32_t ibshift_alg_pieces(const struct ibshift_alg *alg,
                                          const struct ibshift_plan *plan)
{
    return alg->pieces != NULL && ibshift_collective_has_vector(alg->collective) ? alg->pieces(plan)
                                                                                 : 1;
}

/* The logical block (rank of its owner, or piece) whose size block `slot` of TMP has. */
static inline uint32_t ibshift_alg_tmp_block(const struct ibshift_alg *alg,
                                             const struct ibshift_plan *plan, uint32_t rank,
                                             uint32_t slot)
{
    if (alg->tmp_block != NULL) {
        return alg->tmp_block(plan, rank, slot);
    }
    return slot % (ibshift_collective_has_vector(alg->collective) ? ibshift_alg_pieces(alg, plan)
                                                                  : plan->ranks);
}

/*
 * 0; -EINVAL when the plan is out of range; -ENOTSUP when this row cannot do it (another can:
 * row->instead). Then `why` has one line. emit() and rounds() may be called only for a plan that
 * passed, with rank < ranks.
 */
int ibshift_alg_check(const struct ibshift_alg *alg, const struct ibshift_plan *plan, char *why,
                      size_t size);

#endif
