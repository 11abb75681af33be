/* The root sends to one rank after another, its right neighbour first. */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? plan->ranks - 1 : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);

    if (rank == plan->root) {
        emit_send(out, emit_add(rank, round + 1, plan->ranks), all, round, 0);
    } else {
        emit_recv(out, plan->root, all, emit_sub(rank, plan->root, plan->ranks) - 1, 0, 0);
    }
    return 1;
}

const struct ibshift_alg ibshift_alg_bcast_linear = {
    .collective = IBSHIFT_BCAST,
    .name = "linear",
    .doc = "the root sends to one rank after another",
    .cost = "P-1 messages of n bytes at the root",
    .rounds = rounds,
    .emit = emit,
};
