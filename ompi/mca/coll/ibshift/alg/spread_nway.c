/*
 * n-way binomial tree: each round a node with n blocks hands out k + 1 equal parts of them, all
 * but one through k children; a gather is the scatter backwards. (k + 1)^i ranks give the tree T_i
 * of the LogfP papers, fan-out k.
 */
#include "alg/spread.h"

static inline struct spread_cut cut_of(const struct ibshift_plan *plan, uint32_t nodes)
{
    uint32_t parts = plan->radix + 1, size;

    if (parts == 2) {
        return (struct spread_cut){1, nodes - nodes / 2, 0, false};
    }
    if (nodes < parts) {
        return (struct spread_cut){nodes - 1, 1, 0, false};
    }
    size = emit_quotient(nodes, parts);
    return (struct spread_cut){plan->radix, size, nodes - size * parts, false};
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return spread_rank_rounds(plan, rank, cut_of);
}

static uint32_t scatter(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                        struct ibshift_step *out)
{
    return spread_scatter(plan, rank, round, out, cut_of);
}

static uint32_t gather(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                       struct ibshift_step *out)
{
    return spread_gather(plan, rank, round, out, cut_of);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return spread_tmp(plan, rank, cut_of);
}

const struct ibshift_alg ibshift_alg_scatter_nway = {
    .collective = IBSHIFT_SCATTER,
    .name = "nway",
    .doc = "n-way binomial tree, k children per round",
    .cost = "log_{k+1} P rounds, k messages per round, (P-1)m bytes at the root",
    .flags = IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = scatter,
    .tmp = tmp,
    .tmp_block = spread_tmp_block,
};

const struct ibshift_alg ibshift_alg_gather_nway = {
    .collective = IBSHIFT_GATHER,
    .name = "nway",
    .doc = "n-way binomial tree, k children per round",
    .cost = "log_{k+1} P rounds, k messages per round, (P-1)m bytes at the root",
    .flags = IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = gather,
    .tmp = tmp,
    .tmp_block = spread_tmp_block,
};
