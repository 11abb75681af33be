/*
 * k-nomial tree (treefold.h). When the operator commutes, the tree's node 0 is the root; else it
 * is rank 0, which hands the result on.
 */
#include "alg/treefold.h"

static struct treefold fold_of(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t origin = plan->commutative ? plan->root : 0, v = emit_sub(rank, origin, plan->ranks);
    bool at_root = rank == plan->root && v == 0;

    return (struct treefold){
        plan->ranks,
        plan->radix,
        origin,
        v,
        tree_seat(v, plan->ranks, plan->radix + 1),
        emit_blocks(at_root ? IBSHIFT_RECV : IBSHIFT_TMP, at_root ? 0 : 2 * plan->radix, 1)};
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct treefold fold = fold_of(plan, rank);
    bool apart = !plan->commutative && plan->root != 0; /* the result passes on once more */

    return treefold_rounds(&fold) + (fold.v != 0) + (plan->ranks == 1) +
           (apart && (rank == 0 || rank == plan->root));
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct treefold fold = fold_of(plan, rank);
    uint32_t own = treefold_rounds(&fold);
    struct emit_range result = emit_blocks(IBSHIFT_RECV, 0, 1);

    if (plan->ranks == 1) {
        emit_copy(out, result, IBSHIFT_SEND, 0, 0, 0);
        return 1;
    }
    if (round < own) {
        return (uint32_t)(treefold_round(&fold, out, round) - out);
    }
    if (fold.v != 0 && round == own) {
        return (uint32_t)(treefold_up(&fold, out, round) - out);
    }
    if (rank == plan->root) {
        emit_recv(out, 0, result, fold.seat.total, round, round);
    } else {
        emit_send(out, plan->root, fold.acc, fold.seat.total, round);
    }
    return 1;
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    struct treefold fold = fold_of(plan, rank);

    return treefold_rounds(&fold) > 0 ? 2 * plan->radix + 1 : 0;
}

const struct ibshift_alg ibshift_alg_reduce_knomial = {
    .collective = IBSHIFT_REDUCE,
    .name = "knomial",
    .doc = "tree in which a rank reduces the vectors of k others per round",
    .cost = "log_{k+1} P rounds, k messages of n bytes and k reductions per round",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
