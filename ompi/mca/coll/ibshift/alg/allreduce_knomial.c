/* Reduction to rank 0 up the k-nomial tree (treefold.h), then the result down the same tree. */
#include "alg/treefold.h"

static struct treefold fold_of(const struct ibshift_plan *plan, uint32_t rank)
{
    return (struct treefold){plan->ranks,
                             plan->radix,
                             0,
                             rank,
                             tree_seat(rank, plan->ranks, plan->radix + 1),
                             emit_blocks(IBSHIFT_RECV, 0, 1)};
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct treefold fold = fold_of(plan, rank);

    return plan->ranks == 1 ? 1 : treefold_rounds(&fold) + (rank != 0 ? 2 : 0) + fold.seat.below;
}

/* Rounds after the fold: up to the parent, down from it, then to the children, largest subtree
 * first. */
static uint32_t emit_down(const struct treefold *fold, uint32_t round, struct ibshift_step *out)
{
    uint32_t up = treefold_rounds(fold), first = up + (fold->v != 0 ? 2 : 0),
             base = fold->radix + 1, level, place;
    uint32_t total = fold->seat.total;
    struct ibshift_step *step = out;

    if (round < first) {
        bool sends = round == up;

        step = sends ? treefold_up(fold, step, round)
                     : emit_recv(step, tree_parent(fold->v, fold->seat, base), fold->acc,
                                 2 * total - 1 - fold->seat.below, round, round);
        return (uint32_t)(step - out);
    }
    level = fold->seat.below - 1 - (round - first);
    place = tree_place(level, base);
    for (uint32_t j = 1, child = fold->v + place; j < base && child < fold->ranks;
         j++, child += place) {
        step = emit_send(step, child, fold->acc, 2 * total - 1 - level, first);
    }
    return (uint32_t)(step - out);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct treefold fold = fold_of(plan, rank);

    if (plan->ranks > 1 && round >= treefold_rounds(&fold)) {
        return emit_down(&fold, round, out);
    }
    if (plan->ranks > 1) {
        return (uint32_t)(treefold_round(&fold, out, round) - out);
    }
    emit_copy(out, fold.acc, IBSHIFT_SEND, 0, 0, 0);
    return 1;
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    struct treefold fold = fold_of(plan, rank);

    return treefold_rounds(&fold) > 0 ? 2 * plan->radix : 0;
}

const struct ibshift_alg ibshift_alg_allreduce_knomial = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "knomial",
    .doc = "reduction up a tree to rank 0, then a broadcast down the same tree",
    .cost = "2 log_{k+1} P rounds, k messages of n bytes per round",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
