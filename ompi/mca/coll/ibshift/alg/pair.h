/*
 * Reductions between ranks at distances that are powers of two, for any number of ranks: of the
 * first 2 * extra ranks, each even one gives its vector to its right neighbour before and gets the
 * result from it after. The others are the core, a power of two; neighbours stay neighbours, so
 * operands keep their order.
 */
#ifndef IBSHIFT_ALG_PAIR_H
#define IBSHIFT_ALG_PAIR_H

#include "plan/alg_emit.h"

struct pair_core {
    uint32_t size;   /* ranks in the core */
    uint32_t levels; /* its log2 */
    uint32_t extra;
    uint32_t rank; /* within the core; of an outsider: its partner's */
    bool outside;
    bool folds; /* has an outsider to its left */
};

static inline struct pair_core pair_core(uint32_t ranks, uint32_t rank)
{
    uint32_t size = emit_power_below(ranks), extra = ranks - size;
    bool paired = rank < 2 * extra;

    return (struct pair_core){size,
                              emit_log2(size),
                              extra,
                              paired ? rank / 2 : rank - extra,
                              paired && rank % 2 == 0,
                              paired && rank % 2 == 1};
}

static inline uint32_t pair_rank(const struct pair_core *core, uint32_t rank)
{
    return rank < core->extra ? 2 * rank + 1 : rank + core->extra;
}

/* Rounds before the first level: 0 or, with outsiders, the exchange and the fold. */
static inline uint32_t pair_lead(const struct pair_core *core)
{
    return core->extra > 0 ? 2 : 0;
}

/* Which of core->size blocks a core rank has after `levels` halvings, one bit of it each. */
static inline struct emit_range pair_half(const struct pair_core *core, uint32_t rank,
                                          uint32_t levels)
{
    uint32_t bits = rank & ((UINT32_C(1) << levels) - 1);

    return emit_blocks(IBSHIFT_RECV, emit_reverse(bits) >> 1 >> (31 - core->levels),
                       core->size >> levels);
}

#endif
