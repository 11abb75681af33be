/* The root sends each rank its block, its right neighbour first. */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? plan->ranks : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct emit_range own = emit_blocks(IBSHIFT_RECV, 0, 1);
    uint32_t peer = emit_add(rank, round + 1, plan->ranks);

    if (rank != plan->root) {
        emit_recv(out, plan->root, own, emit_sub(rank, plan->root, plan->ranks) - 1, 0, 0);
    } else if (round + 1 < plan->ranks) {
        emit_send(out, peer, emit_blocks(IBSHIFT_SEND, peer, 1), round, 0);
    } else {
        emit_copy(out, own, IBSHIFT_SEND, rank, 0, 0);
    }
    return 1;
}

const struct ibshift_alg ibshift_alg_scatter_linear = {
    .collective = IBSHIFT_SCATTER,
    .name = "linear",
    .doc = "the root sends each rank its block",
    .cost = "P-1 messages of m bytes at the root",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
};
