/*
 * Gather to rank 0 along the k-nomial tree, then back down: a child gets what its own subtree did
 * not give, in up to two parts.
 */
#include "plan/alg_emit.h"
#include "alg/tree.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t below = tree_seat(rank, plan->ranks, plan->radix + 1).below;

    return 2 * below + (rank != 0 ? 2 : plan->ranks == 1);
}

/* Everything outside [first, end), down the tree. */
static struct ibshift_step *emit_rest(const struct ibshift_plan *plan, struct ibshift_step *step,
                                      uint32_t peer, uint32_t first, uint32_t end, uint32_t tag,
                                      uint32_t need, bool sends)
{
    struct emit_range range[2] = {emit_blocks(IBSHIFT_RECV, 0, first),
                                  emit_blocks(IBSHIFT_RECV, end, plan->ranks - end)};

    for (uint8_t part = 0; part < 2; part++) {
        if (range[part].count > 0) {
            step = sends ? emit_send(step, peer, range[part], tag, need)
                         : emit_recv(step, peer, range[part], tag, 0, 0);
            step = emit_part(step, part);
        }
    }
    return step;
}

static uint32_t emit_up(const struct ibshift_plan *plan, uint32_t rank, struct tree_seat seat,
                        uint32_t level, struct ibshift_step *out)
{
    uint32_t base = plan->radix + 1, place, child;
    struct ibshift_step *step = out;

    if (level == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    if (level == seat.below) {
        uint32_t end = tree_end(rank, seat.place, plan->ranks);
        bool leaf = level == 0;

        step = rank == 0 ? step
                         : emit_send(step, tree_parent(rank, seat, base),
                                     emit_blocks(leaf ? IBSHIFT_SEND : IBSHIFT_RECV,
                                                 leaf ? 0 : rank, end - rank),
                                     level, level);
        return (uint32_t)(step - out);
    }
    place = tree_place(level, base);
    child = rank + place;
    for (uint32_t j = 1; j < base && child < plan->ranks; j++, child += place) {
        step =
            emit_recv(step, child,
                      emit_blocks(IBSHIFT_RECV, child, tree_end(child, place, plan->ranks) - child),
                      level, 0, 0);
    }
    return (uint32_t)(step - out);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t base = plan->radix + 1, up, level, place, child;
    struct tree_seat seat = tree_seat(rank, plan->ranks, base);
    struct ibshift_step *step = out;

    up = seat.below + (rank != 0 || plan->ranks == 1);
    if (round < up) {
        return emit_up(plan, rank, seat, round, out);
    }
    if (rank != 0 && round == up) {
        step = emit_rest(plan, step, tree_parent(rank, seat, base), rank,
                         tree_end(rank, seat.place, plan->ranks), 2 * seat.total - 1 - seat.below,
                         0, false);
        return (uint32_t)(step - out);
    }
    level = seat.below - 1 - (round - up - (rank != 0));
    place = tree_place(level, base);
    child = rank + place;
    for (uint32_t j = 1; j < base && child < plan->ranks; j++, child += place) {
        step = emit_rest(plan, step, child, child, tree_end(child, place, plan->ranks),
                         2 * seat.total - 1 - level, up + (rank != 0), true);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allgather_gather_bcast = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "gather_bcast",
    .doc = "k-nomial gather to rank 0, then a broadcast down the same tree",
    .cost = "2 log_{k+1} P rounds, k or 2k messages per round",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
};
