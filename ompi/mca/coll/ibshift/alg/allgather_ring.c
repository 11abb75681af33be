/* Ring: in round r a rank passes on the block that it got in round r - 1 to its right neighbour. */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? plan->ranks - 1 : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, own = emit_sub(rank, round, ranks),
             left = emit_sub(rank, 1, ranks);
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    if (ranks > 1) {
        step = emit_recv(step, left, emit_blocks(IBSHIFT_RECV, emit_sub(own, 1, ranks), 1), round,
                         0, 0);
        step = emit_send(step, emit_add(rank, 1, ranks),
                         round == 0 ? emit_blocks(IBSHIFT_SEND, 0, 1)
                                    : emit_blocks(IBSHIFT_RECV, own, 1),
                         round, round);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allgather_ring = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "ring",
    .doc = "each rank passes blocks on to its right neighbour",
    .cost = "P-1 rounds, P-1 messages, (P-1)m bytes",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_SINGLE,
    .rounds = rounds,
    .emit = emit,
};
