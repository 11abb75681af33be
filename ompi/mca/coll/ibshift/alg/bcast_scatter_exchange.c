/*
 * The root gives each other rank one of P - 1 pieces, and each passes its own on to the others:
 * two latencies, where a ring has P of them.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks - 1;
}

/* The rank that gets that piece first. */
static uint32_t owner(const struct ibshift_plan *plan, uint32_t piece)
{
    return emit_add(plan->root, piece + 1, plan->ranks);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t pieces = plan->ranks - 1, own = emit_sub(rank, plan->root, plan->ranks) - 1, to, from;
    struct ibshift_step *step = out;

    if (rank == plan->root) {
        step = emit_send(step, owner(plan, round), emit_blocks(IBSHIFT_RECV, round, 1), 0, 0);
        return (uint32_t)(step - out);
    }
    if (round == 0) {
        step = emit_recv(step, plan->root, emit_blocks(IBSHIFT_RECV, own, 1), 0, 0, 0);
        return (uint32_t)(step - out);
    }
    to = emit_add(own, round, pieces);
    from = emit_sub(own, round, pieces);
    step = emit_recv(step, owner(plan, from), emit_blocks(IBSHIFT_RECV, from, 1), round, 0, 0);
    step = emit_send(step, owner(plan, to), emit_blocks(IBSHIFT_RECV, own, 1), round, 1);
    return (uint32_t)(step - out);
}

static uint32_t pieces(const struct ibshift_plan *plan)
{
    return plan->ranks > 1 ? plan->ranks - 1 : 1;
}

const struct ibshift_alg ibshift_alg_bcast_scatter_exchange = {
    .collective = IBSHIFT_BCAST,
    .name = "scatter_exchange",
    .doc = "the root sends each rank a part, which that rank sends to all others",
    .cost = "P-1 messages of n/(P-1) bytes at the root, P-2 at every other rank",
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
};
