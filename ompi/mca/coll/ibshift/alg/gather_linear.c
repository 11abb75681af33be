/* Every rank sends its block to the root, which takes them in the order of its right neighbours. */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? plan->ranks : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t peer = emit_add(rank, round, plan->ranks);

    if (rank != plan->root) {
        emit_send(out, plan->root, emit_blocks(IBSHIFT_SEND, 0, 1),
                  emit_sub(rank, plan->root, plan->ranks) - 1, 0);
    } else if (round == 0) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    } else {
        emit_recv(out, peer, emit_blocks(IBSHIFT_RECV, peer, 1), round - 1, 0, 0);
    }
    return 1;
}

const struct ibshift_alg ibshift_alg_gather_linear = {
    .collective = IBSHIFT_GATHER,
    .name = "linear",
    .doc = "every rank sends its block to the root",
    .cost = "P-1 messages of m bytes into the root",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
};
