/* Every rank sends its vector to the root, which folds them one after another (collect.h). */
#include "alg/collect.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? plan->ranks + 1 : 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    if (rank == plan->root) {
        return (
            uint32_t)(collect_round(plan, out, rank, round, 0, emit_blocks(IBSHIFT_RECV, 0, 1)) -
                      out);
    }
    emit_send(out, plan->root, emit_blocks(IBSHIFT_SEND, 0, 1),
              collect_number(plan, plan->root, rank), 0);
    return 1;
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return rank == plan->root ? collect_tmp(plan) : 0;
}

const struct ibshift_alg ibshift_alg_reduce_linear = {
    .collective = IBSHIFT_REDUCE,
    .name = "linear",
    .doc = "the root reduces one vector after another",
    .cost = "P-1 messages of n bytes and P-1 reductions at the root",
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
