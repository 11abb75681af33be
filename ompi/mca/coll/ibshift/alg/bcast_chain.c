/*
 * Pipelined chain from the root to its right: a rank passes segment s on while segment s + 1 comes
 * in.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t v = emit_sub(rank, plan->root, plan->ranks);

    return plan->ranks == 1 ? 0 : plan->segments + (v != 0 && v != plan->ranks - 1);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, v = emit_sub(rank, plan->root, ranks);
    uint32_t segment = round - (v != 0); /* that goes on in this round */
    struct ibshift_step *step = out;

    if (v != 0 && round < plan->segments) {
        step = emit_recv(step, emit_sub(rank, 1, ranks), emit_blocks(IBSHIFT_RECV, round, 1),
                         v - 1 + round, 0, 0);
    }
    if (v != ranks - 1 && segment < plan->segments) {
        step = emit_send(step, emit_add(rank, 1, ranks), emit_blocks(IBSHIFT_RECV, segment, 1),
                         v + segment, round);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_bcast_chain = {
    .collective = IBSHIFT_BCAST,
    .name = "chain",
    .doc = "pipelined chain of segments",
    .cost = "S+P-2 rounds, S messages of n/S bytes",
    .flags = IBSHIFT_ALG_SEGMENTS,
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_segment,
};
