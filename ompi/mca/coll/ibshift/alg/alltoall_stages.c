/*
 * All-to-all by a table of stages, made for a fabric and a set of nodes (plan/order.h). Round =
 * stage; the own block is copied in stage 0. Without a table it is a shift in rank order.
 */
#include "plan/alg_emit.h"
#include "plan/order.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t stages = plan->stages != NULL ? plan->stages->stages : plan->ranks - 1;

    return stages > 0 ? stages : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t from = IBSHIFT_NO_RANK, to = IBSHIFT_NO_RANK;
    struct ibshift_step *step = out;

    if (plan->stages == NULL && plan->ranks > 1) {
        from = emit_sub(rank, round + 1, plan->ranks);
        to = emit_add(rank, round + 1, plan->ranks);
    } else if (plan->stages != NULL && plan->stages->stages > 0) {
        size_t entry = (size_t)(rank - plan->stages->first) * plan->stages->stages + round;

        from = plan->stages->from[entry];
        to = plan->stages->to[entry];
    }
    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, rank, 0, 0);
    }
    if (from != IBSHIFT_NO_RANK) {
        step = emit_recv(step, from, emit_blocks(IBSHIFT_RECV, from, 1), round, 0, 0);
    }
    if (to != IBSHIFT_NO_RANK) {
        step = emit_send(step, to, emit_blocks(IBSHIFT_SEND, to, 1), round, 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_alltoall_stages = {
    .collective = IBSHIFT_ALLTOALL,
    .name = "stages",
    .doc = "partners from a table of stages made for the fabric",
    .cost = "the table's stages, P-1 messages of m bytes",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_STAGES | IBSHIFT_ALG_FREE,
    .rounds = rounds,
    .emit = emit,
};
