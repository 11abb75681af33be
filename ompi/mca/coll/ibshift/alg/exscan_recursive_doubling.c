/*
 * Recursive doubling as in scan, with the partial result that contains the own vector in TMP and
 * the one that does not in RECV.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks == 1 ? 0 : 2 * emit_digits(plan->ranks, 2);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t level = round / 2, hop = UINT32_C(1) << level;
    struct emit_range result = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct emit_range with = emit_blocks(IBSHIFT_TMP, 0, 1), in = emit_blocks(IBSHIFT_TMP, 1, 1);
    bool is_own = level == 0 || rank == 0; /* nothing has come: SEND is what there is */
    struct ibshift_step *step = out;

    if (round % 2 == 0) {
        step = rank >= hop ? emit_recv(step, rank - hop, in, level, round, 0) : step;
        step = rank + hop < plan->ranks
                   ? emit_send(step, rank + hop, is_own ? emit_blocks(IBSHIFT_SEND, 0, 1) : with,
                               level, round)
                   : step;
    } else if (rank >= hop) {
        step = emit_reduce(step, IBSHIFT_STEP_REDUCE, with, IBSHIFT_TMP, 1, round, round);
        step = is_own ? emit_with(step, IBSHIFT_SEND, 0) : step;
        step = level == 0 /* RECV may be SEND: only now */
                   ? emit_copy(step, result, IBSHIFT_TMP, 1, round, round)
                   : emit_reduce(step, IBSHIFT_STEP_REDUCE, result, IBSHIFT_TMP, 1, round, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank > 0 ? 2 : 0;
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
