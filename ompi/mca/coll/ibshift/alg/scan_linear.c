/* Linear: a rank folds its vector into what comes from the left and passes it on to the right. */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == 0 ? 2 : 3;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct ibshift_step *step = out;

    if (round == 0) {
        step = rank > 0 ? emit_recv(step, rank - 1, emit_blocks(IBSHIFT_TMP, 0, 1), rank - 1, 0, 0)
                        : emit_copy(step, all, IBSHIFT_SEND, 0, 0, 0);
    } else if (rank > 0 && round == 1) {
        step = emit_reduce(step, IBSHIFT_STEP_REDUCE, all, IBSHIFT_TMP, 0, 1, 0);
        step = emit_with(step, IBSHIFT_SEND, 0);
    } else if (rank + 1 < plan->ranks) {
        step = emit_send(step, rank + 1, all, rank, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank > 0;
}

const struct ibshift_alg ibshift_alg_scan_linear = {
    .collective = IBSHIFT_SCAN,
    .name = "linear",
    .doc = "each rank adds its own vector and passes the result on",
    .cost = "P-1 rounds of n bytes, one reduction each",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
