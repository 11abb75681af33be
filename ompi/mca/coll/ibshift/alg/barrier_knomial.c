/* Word of all comes up the k-nomial tree of tree.h to rank 0, and goes down the same tree. */
#include "alg/tree.h"

/* Rounds: one for each level of children that reports, one with the parent, one for each level that
 * is told. */
static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return 2 * tree_seat(rank, plan->ranks, plan->radix + 1).below + (rank != 0);
}

static struct ibshift_step *with_parent(struct ibshift_step *step, uint32_t rank,
                                        struct tree_seat seat, uint32_t base)
{
    uint32_t parent = tree_parent(rank, seat, base);

    step = emit_recv(step, parent, emit_blocks(IBSHIFT_RECV, 0, 0), 2 * seat.total - 1 - seat.below,
                     0, 0);
    return emit_send(step, parent, emit_blocks(IBSHIFT_SEND, 0, 0), seat.below, seat.below);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t base = plan->radix + 1, level, place;
    struct tree_seat seat = tree_seat(rank, plan->ranks, base);
    uint32_t told = seat.below + (rank != 0); /* the first round after the parent's word */
    struct ibshift_step *step = out;

    if (round >= seat.below && round < told) {
        return (uint32_t)(with_parent(step, rank, seat, base) - out);
    }
    level = round < seat.below ? round : seat.below - 1 - (round - told);
    place = tree_place(level, base);
    for (uint32_t j = 1, child = rank + place; j < base && child < plan->ranks;
         j++, child += place) {
        step = round < seat.below
                   ? emit_recv(step, child, emit_blocks(IBSHIFT_RECV, 0, 0), level, 0, 0)
                   : emit_send(step, child, emit_blocks(IBSHIFT_SEND, 0, 0),
                               2 * seat.total - 1 - level, told);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_barrier_knomial = {
    .collective = IBSHIFT_BARRIER,
    .name = "knomial",
    .doc = "arrivals go up a tree to rank 0, the release comes down again",
    .cost = "2 log_{k+1} P rounds, 2 (P - 1) messages in all, no bytes",
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
};
