/*
 * The root sends each piece to all others at once, by multicast. Without a group it is the linear algorithm.
 *
 * Reference: Siebert, C.: Efficient Broadcast for Multicast-Capable Interconnection Networks. Diploma thesis, TU
 * Chemnitz, 2006; here acknowledgements are the net's (net/cast/cast.h).
 */
#include "plan/alg_emit.h"

static uint32_t rounds_of_piece(const struct ibshift_plan *plan)
{
    return (plan->ranks - 1 + IBSHIFT_ROUND_STEPS - 1) / IBSHIFT_ROUND_STEPS;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->segments * (rank == plan->root ? rounds_of_piece(plan) : 1);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t each = rank == plan->root ? rounds_of_piece(plan) : 1, piece = round / each;
    uint32_t first = round % each * IBSHIFT_ROUND_STEPS + 1, end = first + IBSHIFT_ROUND_STEPS;
    struct ibshift_step *step = out;
    struct emit_range data = emit_blocks(IBSHIFT_RECV, piece, 1);

    if (rank != plan->root) {
        emit_cast(out, emit_recv(out, plan->root, data, piece, 0, 0));
        return 1;
    }
    end = end < plan->ranks ? end : plan->ranks;
    for (uint32_t i = first; i < end; i++) {
        step = emit_send(step, emit_add(rank, i, plan->ranks), data, piece, 0);
    }
    return (uint32_t)(emit_cast(out, step) - out);
}

static uint32_t pieces(const struct ibshift_plan *plan)
{
    return plan->segments;
}

const struct ibshift_alg ibshift_alg_bcast_multicast = {
    .collective = IBSHIFT_BCAST,
    .name = "multicast",
    .doc = "the root sends to all at once",
    .cost = "S datagrams of n/S bytes at the root",
    .flags = IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_MULTICAST,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
};
