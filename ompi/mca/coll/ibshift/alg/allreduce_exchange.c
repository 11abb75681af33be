/*
 * Every rank folds one of P pieces of all vectors (collect.h) and sends the result to all others:
 * reduce_scatter and allgather, each in one latency.
 */
#include "alg/collect.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return 2 * plan->ranks;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct emit_range own = emit_blocks(IBSHIFT_RECV, rank, 1);
    uint32_t ranks = plan->ranks, distance = round - ranks, to, from;
    struct ibshift_step *step = out;

    if (round <= ranks) {
        return (uint32_t)(collect_exchange(plan, out, rank, round, own) - out);
    }
    to = emit_add(rank, distance, ranks);
    from = emit_sub(rank, distance, ranks);
    step = emit_recv(step, from, emit_blocks(IBSHIFT_RECV, from, 1), round, 0, 0);
    step = emit_send(step, to, own, round, ranks + 1);
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allreduce_exchange = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "exchange",
    .doc = "every rank reduces one part of all vectors and sends it to all others",
    .cost = "2(P-1) messages of n/P bytes, n(P-1)/P reduced, two latencies",
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_rank,
    .tmp = collect_tmp_of,
    .tmp_block = collect_tmp_block,
};
