/*
 * Rabenseifner's reduction (2004): vectors are halved level by level between core ranks (pair.h) at
 * doubling distance, each keeping the half that its bit says, until every core rank has one piece
 * of the result; nearest first, so that operands keep their order. acc holds the partial vector;
 * TMP blocks of the same numbers take what comes.
 */
#ifndef IBSHIFT_ALG_HALVING_H
#define IBSHIFT_ALG_HALVING_H

#include "alg/pair.h"

struct halving {
    struct pair_core core;
    uint32_t rank;
    enum ibshift_buffer acc; /* blocks 0 .. core.size - 1 */
    uint32_t in;             /* first TMP block of what comes */
};

static inline uint32_t halving_rounds(const struct halving *h)
{
    return h->core.outside ? 1 : pair_lead(&h->core) + 2 * h->core.levels;
}

static inline struct ibshift_step *halving_lead(const struct halving *h, struct ibshift_step *step,
                                                uint32_t round)
{
    struct emit_range all = emit_blocks(h->acc, 0, h->core.size);

    if (h->core.outside) {
        return emit_send(step, h->rank + 1, emit_blocks(IBSHIFT_SEND, 0, h->core.size), 0, 0);
    }
    if (round == 0) {
        step = emit_copy(step, all, IBSHIFT_SEND, 0, 0, 0);
        return h->core.folds ? emit_recv(step, h->rank - 1,
                                         emit_blocks(IBSHIFT_TMP, h->in, h->core.size), 0, 0, 0)
                             : step;
    }
    return h->core.folds ? emit_local(step, IBSHIFT_STEP_REDUCE, all, IBSHIFT_TMP, h->in, 1, 0)
                         : step;
}

/* All steps of a round below halving_rounds(). */
static inline struct ibshift_step *halving_round(const struct halving *h, struct ibshift_step *step,
                                                 uint32_t round)
{
    uint32_t lead = pair_lead(&h->core), level, peer;
    struct emit_range keep, give;

    if (h->core.outside || round < lead || round == 0) {
        step = halving_lead(h, step, round);
    }
    if (h->core.outside || round < lead || h->core.size == 1) {
        return step;
    }
    level = (round - lead) / 2;
    peer = h->core.rank ^ UINT32_C(1) << level;
    keep = pair_half(&h->core, h->core.rank, level + 1);
    give = pair_half(&h->core, peer, level + 1);
    if ((round - lead) % 2 == 1) {
        keep.buf = h->acc;
        return emit_local(step,
                          peer < h->core.rank ? IBSHIFT_STEP_REDUCE : IBSHIFT_STEP_REDUCE_AFTER,
                          keep, IBSHIFT_TMP, h->in + keep.first, round, 0);
    }
    give.buf = round == 0 ? IBSHIFT_SEND : h->acc;
    step = emit_recv(step, pair_rank(&h->core, peer),
                     emit_blocks(IBSHIFT_TMP, h->in + keep.first, keep.count), level + (lead > 0),
                     round, 0);
    return emit_send(step, pair_rank(&h->core, peer), give, level + (lead > 0), round);
}

#endif
