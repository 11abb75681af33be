/*
 * Reduction up the k-nomial tree of tree.h. A node folds its children in the order of their ranges,
 * nearest first, each to the right of what it has, so the operator need not commute. The children
 * of level l come in round l and are folded in round l + 1; two sets of k slots in TMP take turns.
 */
#ifndef IBSHIFT_ALG_TREEFOLD_H
#define IBSHIFT_ALG_TREEFOLD_H

#include "plan/alg_emit.h"
#include "alg/tree.h"

/* The tree's node v on this rank; node u is rank (u + origin) % ranks. */
struct treefold {
    uint32_t ranks;
    uint32_t radix;
    uint32_t origin;
    uint32_t v;
    struct tree_seat seat;
    struct emit_range acc; /* one block; not used by a leaf, which sends SEND */
};

static inline uint32_t treefold_rank(const struct treefold *fold, uint32_t u)
{
    return emit_add(u, fold->origin, fold->ranks);
}

/* Rounds with children and folds; the send to the parent may be in the last one + 1. The last node
 * may stand where others have children. */
static inline uint32_t treefold_rounds(const struct treefold *fold)
{
    return fold->seat.below > 0 && fold->v + 1 < fold->ranks ? fold->seat.below + 1 : 0;
}

/* Children that come in round `round`, and the fold of those of the round before. */
static inline struct ibshift_step *treefold_round(const struct treefold *fold,
                                                  struct ibshift_step *step, uint32_t round)
{
    uint32_t base = fold->radix + 1, last = round > 0 ? 1 : 0;

    for (uint32_t back = round < fold->seat.below ? 0 : 1; back <= last; back++) {
        uint32_t level = round - back, place = tree_place(level, base), child = fold->v + place;

        for (uint32_t j = 0; j < fold->radix && child < fold->ranks; j++, child += place) {
            struct emit_range slot = emit_blocks(IBSHIFT_TMP, level % 2 * fold->radix + j, 1);

            if (back == 0) {
                step = emit_recv(step, treefold_rank(fold, child), slot, level, round, 0);
                continue;
            }
            step = emit_reduce(step, IBSHIFT_STEP_REDUCE_AFTER, fold->acc, IBSHIFT_TMP, slot.first,
                               round, 0);
            step = level == 0 && j == 0 ? emit_with(step, IBSHIFT_SEND, 0) : step;
        }
    }
    return step;
}

/* The send to the parent of a node that has one. */
static inline struct ibshift_step *treefold_up(const struct treefold *fold,
                                               struct ibshift_step *step, uint32_t round)
{
    bool leaf = treefold_rounds(fold) == 0;

    return emit_send(step, treefold_rank(fold, tree_parent(fold->v, fold->seat, fold->radix + 1)),
                     leaf ? emit_blocks(IBSHIFT_SEND, 0, 1) : fold->acc, fold->seat.below, round);
}

#endif
