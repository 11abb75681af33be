/* Every rank sends each other its block and folds what it gets (collect.h). */
#include "alg/collect.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks + 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    return (uint32_t)(collect_exchange(plan, out, rank, round, emit_blocks(IBSHIFT_RECV, 0, 1)) -
                      out);
}

const struct ibshift_alg ibshift_alg_reduce_scatter_linear = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "linear",
    .doc = "every rank reduces its block of all vectors",
    .cost = "P-1 messages of m bytes, P-1 reductions",
    .flags = IBSHIFT_ALG_SIZES,
    .rounds = rounds,
    .emit = emit,
    .tmp = collect_tmp_of,
    .tmp_block = collect_tmp_block,
};
