/*
 * Every rank folds one of P pieces of all vectors (collect.h) and sends the result to the root:
 * reduce_scatter and gather, each in one latency.
 */
#include "alg/collect.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? 2 * plan->ranks : plan->ranks + 2;
}

/* The root folds where the result belongs, others behind the slots of what comes. */
static struct emit_range acc_of(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? emit_blocks(IBSHIFT_RECV, rank, 1)
                              : emit_blocks(IBSHIFT_TMP, collect_tmp(plan), 1);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, from;
    struct ibshift_step *step = out;

    if (round <= ranks) {
        return (uint32_t)(collect_exchange(plan, out, rank, round, acc_of(plan, rank)) - out);
    }
    if (rank == plan->root) {
        from = emit_add(rank, round - ranks, ranks);
        step = emit_recv(step, from, emit_blocks(IBSHIFT_RECV, from, 1), ranks, 0, 0);
    } else {
        step = emit_send(step, plan->root, acc_of(plan, rank), ranks, ranks + 1);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return collect_tmp(plan) + (rank != plan->root);
}

const struct ibshift_alg ibshift_alg_reduce_exchange = {
    .collective = IBSHIFT_REDUCE,
    .name = "exchange",
    .doc = "every rank reduces one part of all vectors and sends it to the root",
    .cost = "P messages of n/P bytes, n(P-1)/P reduced, two latencies",
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_rank,
    .tmp = tmp,
    .tmp_block = collect_tmp_block,
};
