/*
 * Linear: a rank sends to its right neighbours and receives from its left ones, nearest first, as
 * far as the window lets it.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t from = emit_sub(rank, round, plan->ranks), to = emit_add(rank, round, plan->ranks);

    if (round == 0) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, rank, 0, 0);
        return 1;
    }
    emit_recv(out, from, emit_blocks(IBSHIFT_RECV, from, 1), round - 1, 0, 0);
    emit_send(out + 1, to, emit_blocks(IBSHIFT_SEND, to, 1), round - 1, 0);
    return 2;
}

const struct ibshift_alg ibshift_alg_alltoall_linear = {
    .collective = IBSHIFT_ALLTOALL,
    .name = "linear",
    .doc = "all partners, nearest first, as many at once as the window allows",
    .cost = "P-1 messages of m bytes, no round waits for another",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_FREE,
    .rounds = rounds,
    .emit = emit,
};
