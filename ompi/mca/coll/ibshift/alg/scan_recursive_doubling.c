/*
 * Recursive doubling (Hillis, Steele 1986): in level i a rank sends what it has, 2^i operands, to
 * the rank 2^i to its right and puts what comes from the left before it.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks == 1 ? 1 : 2 * emit_digits(plan->ranks, 2);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t level = round / 2, hop = UINT32_C(1) << level;
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct ibshift_step *step = out;

    if (round == 0 && rank == 0) {
        step = emit_copy(step, all, IBSHIFT_SEND, 0, 0, 0);
    }
    if (round % 2 == 1) {
        if (rank >= hop) {
            step = emit_reduce(step, IBSHIFT_STEP_REDUCE, all, IBSHIFT_TMP, 0, round, round);
            step = level == 0 ? emit_with(step, IBSHIFT_SEND, 0) : step;
        }
        return (uint32_t)(step - out);
    }
    if (rank >= hop) {
        step = emit_recv(step, rank - hop, emit_blocks(IBSHIFT_TMP, 0, 1), level, round, 0);
    }
    if (rank + hop < plan->ranks) {
        step = emit_send(step, rank + hop, round == 0 ? emit_blocks(IBSHIFT_SEND, 0, 1) : all,
                         level, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank > 0;
}

const struct ibshift_alg ibshift_alg_scan_recursive_doubling = {
    .collective = IBSHIFT_SCAN,
    .name = "recursive_doubling",
    .doc = "results cover twice as many ranks each round",
    .cost = "log2 P rounds of n bytes, one reduction each",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
