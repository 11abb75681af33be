/* k-nomial tree over ranks counted from the root, largest subtrees first. */
#include "plan/alg_emit.h"
#include "alg/tree.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t v = emit_sub(rank, plan->root, plan->ranks);

    return (v != 0) + tree_seat(v, plan->ranks, plan->radix + 1).below;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, base = plan->radix + 1, v = emit_sub(rank, plan->root, ranks);
    struct tree_seat seat = tree_seat(v, ranks, base);
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct ibshift_step *step = out;
    uint32_t level, place;

    if (v != 0 && round == 0) {
        emit_recv(step, emit_add(tree_parent(v, seat, base), plan->root, ranks), all,
                  seat.total - 1 - seat.below, 0, 0);
        return 1;
    }
    level = seat.below - 1 - (round - (v != 0));
    place = tree_place(level, base);
    for (uint32_t j = 1, child = v + place; j < base && child < ranks; j++, child += place) {
        step = emit_send(step, emit_add(child, plan->root, ranks), all, seat.total - 1 - level,
                         v != 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_bcast_knomial = {
    .collective = IBSHIFT_BCAST,
    .name = "knomial",
    .doc = "tree in which each rank that has the data sends it to k others per round",
    .cost = "log_{k+1} P rounds, k messages per round, n bytes each",
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
};
