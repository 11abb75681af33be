/*
 * Linear: what comes from the left is the result; a rank folds its vector into a copy and passes
 * that on.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    bool last = rank + 1 == plan->ranks;

    return plan->ranks == 1 ? 0 : rank == 0 ? 1 : last ? 1 : 4;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1), own = emit_blocks(IBSHIFT_TMP, 0, 1);
    bool last = rank + 1 == plan->ranks;

    if (rank == 0) {
        emit_send(out, 1, emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0);
    } else if (round == 0 && !last) {
        emit_copy(out, own, IBSHIFT_SEND, 0, 0, 0);
    } else if (round <= 1) { /* only now: RECV may be SEND */
        emit_recv(out, rank - 1, all, rank - 1, round, 0);
    } else if (round == 2) {
        emit_reduce(out, IBSHIFT_STEP_REDUCE, own, IBSHIFT_RECV, 0, 2, 0);
    } else {
        emit_send(out, rank + 1, own, rank, 3);
    }
    return 1;
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank > 0 && rank + 1 < plan->ranks;
}

const struct ibshift_alg ibshift_alg_exscan_linear = {
    .collective = IBSHIFT_EXSCAN,
    .name = "linear",
    .doc = "each rank keeps what its left neighbour sends, adds its own vector and passes it on",
    .cost = "P-1 rounds of n bytes, one reduction each",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
