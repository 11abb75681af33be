/*
 * Neighbour exchange (Chen, Zhang, Zhang, Yuan 2005): pairs of blocks go to the left and to the
 * right neighbour by turns.
 */
#include "plan/alg_emit.h"

/* First block of the pair that comes in a round: the even rank of it; round 0 is the rank's own
 * pair. */
static uint32_t pair(uint32_t rank, uint32_t round, uint32_t ranks)
{
    uint32_t distance = round + (round & 1);
    bool left = (rank ^ round) & 1;

    return left ? emit_sub(rank & ~1u, distance, ranks) : emit_add(rank & ~1u, distance, ranks);
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? plan->ranks / 2 : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, peer;
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
        if (ranks > 1) {
            step = emit_recv(step, rank ^ 1, emit_blocks(IBSHIFT_RECV, rank ^ 1, 1), 0, 0, 0);
            step = emit_send(step, rank ^ 1, emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0);
        }
        return (uint32_t)(step - out);
    }
    peer = (rank ^ round) & 1 ? emit_sub(rank, 1, ranks) : emit_add(rank, 1, ranks);
    step =
        emit_recv(step, peer, emit_blocks(IBSHIFT_RECV, pair(rank, round, ranks), 2), round, 0, 0);
    step = emit_send(step, peer, emit_blocks(IBSHIFT_RECV, pair(rank, round - 1, ranks), 2), round,
                     round);
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allgather_neighbor_exchange = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "neighbor_exchange",
    .doc = "pairs of blocks go left and right in turn",
    .cost = "P/2 rounds, P/2 messages, (P-1)m bytes",
    .instead = "ring",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_EVEN,
    .rounds = rounds,
    .emit = emit,
};
