/*
 * Modified ring: every round another partner; each rank sends its own block to all others and
 * waits for nobody.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? plan->ranks - 1 : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    if (plan->ranks > 1) {
        uint32_t from = emit_sub(rank, round + 1, plan->ranks);

        step = emit_recv(step, from, emit_blocks(IBSHIFT_RECV, from, 1), round, 0, 0);
        step = emit_send(step, emit_add(rank, round + 1, plan->ranks),
                         emit_blocks(IBSHIFT_SEND, 0, 1), round, 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allgather_modified_ring = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "modified_ring",
    .doc = "each rank sends its own block to all others, one partner per round",
    .cost = "P-1 messages of m bytes, no round waits for another",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
};
