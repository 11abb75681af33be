/*
 * Recursive splitting: a node with n blocks hands the upper n / 2 to one child (van de Geijn et
 * al. 1996). With plan->split the part is what a model finds best for each n (Alexandrov, Ionescu,
 * Schauser, Scheiman 1997: optimal in LogGP). A gather is the scatter backwards.
 */
#include "alg/spread.h"

static inline struct spread_cut cut_of(const struct ibshift_plan *plan, uint32_t nodes)
{
    return (struct spread_cut){1, plan->split != NULL ? plan->split[nodes] : nodes / 2, 0, true};
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

const struct ibshift_alg ibshift_alg_scatter_split = {
    .collective = IBSHIFT_SCATTER,
    .name = "split",
    .doc = "recursive splitting, in halves or as plan->split says",
    .cost = "log2 P rounds in halves, (P-1)m bytes at the root",
    .flags = IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_SPLIT,
    .rounds = rounds,
    .emit = scatter,
    .tmp = tmp,
    .tmp_block = spread_tmp_block,
};

const struct ibshift_alg ibshift_alg_gather_split = {
    .collective = IBSHIFT_GATHER,
    .name = "split",
    .doc = "recursive splitting, in halves or as plan->split says",
    .cost = "log2 P rounds in halves, (P-1)m bytes at the root",
    .flags = IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_SPLIT,
    .rounds = rounds,
    .emit = gather,
    .tmp = tmp,
    .tmp_block = spread_tmp_block,
};
