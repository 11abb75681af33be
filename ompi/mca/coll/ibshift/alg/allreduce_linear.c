/*
 * Every rank sends its vector to all others and folds what it gets (collect.h): one latency, for
 * few ranks and short vectors.
 */
#include "alg/collect.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks + 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct ibshift_step *step =
        collect_round(plan, out, rank, round, 0, emit_blocks(IBSHIFT_RECV, 0, 1));
    uint32_t to =
        plan->commutative && round < plan->ranks ? emit_add(rank, round, plan->ranks) : round;

    if (round < plan->ranks && to != rank) {
        step =
            emit_send(step, to, emit_blocks(IBSHIFT_SEND, 0, 1), collect_number(plan, to, rank), 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allreduce_linear = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "linear",
    .doc = "every rank reduces the vectors of all others",
    .cost = "P-1 messages of n bytes, P-1 reductions, one latency",
    .rounds = rounds,
    .emit = emit,
    .tmp = collect_tmp_of,
};
