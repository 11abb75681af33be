/*
 * Recursive doubling: in level i ranks at distance 2^i exchange all they have; any number of ranks
 * by pair.h.
 */
#include "alg/pair.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct pair_core core = pair_core(plan->ranks, rank);

    if (core.outside) {
        return 2;
    }
    return plan->ranks == 1 ? 1 : pair_lead(&core) + 2 * core.levels + core.folds;
}

/* Before the levels; the outsider's result comes in its second round. */
static struct ibshift_step *emit_lead(const struct pair_core *core, struct ibshift_step *step,
                                      uint32_t rank, uint32_t round)
{
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);

    if (core->outside) {
        return round == 0 ? emit_send(step, rank + 1, emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0)
                          : emit_recv(step, rank + 1, all, core->levels + 1, 0, 1);
    }
    if (!core->folds) {
        return core->levels == 0 ? emit_copy(step, all, IBSHIFT_SEND, 0, 0, 0) : step;
    }
    if (round == 0) {
        return emit_recv(step, rank - 1, emit_blocks(IBSHIFT_TMP, 0, 1), 0, 0, 0);
    }
    return emit_with(emit_reduce(step, IBSHIFT_STEP_REDUCE, all, IBSHIFT_TMP, 0, 1, 0),
                     IBSHIFT_SEND, 0);
}

/* Even rounds of the core exchange, odd ones fold: the lower rank's half is the left operand. */
static struct ibshift_step *emit_level(const struct pair_core *core, struct ibshift_step *step,
                                       uint32_t round)
{
    uint32_t lead = pair_lead(core), level = (round - lead) / 2,
             peer = core->rank ^ UINT32_C(1) << level;
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);

    bool own = level == 0 && !core->folds; /* RECV is empty */

    if ((round - lead) % 2 == 0) {
        step = emit_recv(step, pair_rank(core, peer), emit_blocks(IBSHIFT_TMP, 0, 1),
                         level + (lead > 0), round, 0);
        return emit_send(step, pair_rank(core, peer), own ? emit_blocks(IBSHIFT_SEND, 0, 1) : all,
                         level + (lead > 0), round);
    }
    step = emit_reduce(step, peer < core->rank ? IBSHIFT_STEP_REDUCE : IBSHIFT_STEP_REDUCE_AFTER,
                       all, IBSHIFT_TMP, 0, round, round);
    return own ? emit_with(step, IBSHIFT_SEND, 0) : step;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct pair_core core = pair_core(plan->ranks, rank);
    uint32_t lead = pair_lead(&core), last = lead + 2 * core.levels;
    struct ibshift_step *step = out;

    if (core.outside || round < lead || round == 0) {
        step = emit_lead(&core, step, rank, round);
    }
    if (!core.outside && round >= lead && round < last) {
        step = emit_level(&core, step, round);
    }
    if (core.folds && round == last) {
        step = emit_send(step, rank - 1, emit_blocks(IBSHIFT_RECV, 0, 1), core.levels + 1, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 && !pair_core(plan->ranks, rank).outside;
}

const struct ibshift_alg ibshift_alg_allreduce_recursive_doubling = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "recursive_doubling",
    .doc = "ranks at doubling distance exchange all they have",
    .cost = "log2 P rounds of n bytes and one reduction; no power of two: 2 more",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
