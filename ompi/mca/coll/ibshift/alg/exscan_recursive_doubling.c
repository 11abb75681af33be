/*
 * Recursive doubling as in scan, with the partial result that contains the own vector in TMP and
 * the one that does not in RECV.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks == 1 ? 0 : 1 + 2 * emit_digits(plan->ranks, 2);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t level = (round - 1) / 2, hop = UINT32_C(1) << level % 32;
    struct emit_range result = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct emit_range with = emit_blocks(IBSHIFT_TMP, 0, 1), in = emit_blocks(IBSHIFT_TMP, 1, 1);
    struct ibshift_step *step = out;

    if (round == 0) {
        emit_copy(out, with, IBSHIFT_SEND, 0, 0, 0);
        return 1;
    }
    if (round % 2 == 1) {
        step = rank >= hop ? emit_recv(step, rank - hop, in, level, round, 0) : step;
        step = rank + hop < plan->ranks ? emit_send(step, rank + hop, with, level, round) : step;
    } else if (rank >= hop) {
        step = level == 0 ? emit_copy(step, result, IBSHIFT_TMP, 1, round, 0)
                          : emit_local(step, IBSHIFT_STEP_REDUCE, result, IBSHIFT_TMP, 1, round, 0);
        step = emit_local(step, IBSHIFT_STEP_REDUCE, with, IBSHIFT_TMP, 1, round, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? 2 : 0;
}

const struct ibshift_alg ibshift_alg_exscan_recursive_doubling = {
    .collective = IBSHIFT_EXSCAN,
    .name = "recursive_doubling",
    .doc = "results cover twice as many ranks each round, with and without the rank's own vector",
    .cost = "log2 P rounds of n bytes, two reductions each",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
