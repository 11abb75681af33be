/*
 * Recursive halving: ranks at distance P/2, P/4, ... 1 exchange the half of the blocks that the
 * other one's side needs. Any number of ranks by pair.h; a core rank with an outsider keeps that
 * one's block next to its own.
 */
#include "alg/pair.h"

/* TMP block b is the partial block b, P + b what comes for it. */
static struct emit_range blocks_of(const struct pair_core *core, uint32_t first, uint32_t count)
{
    uint32_t begin = first < core->extra ? 2 * first : first + core->extra, end = first + count;

    return emit_blocks(IBSHIFT_TMP, begin,
                       (end < core->extra ? 2 * end : end + core->extra) - begin);
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct pair_core core = pair_core(plan->ranks, rank);

    return core.outside ? 2 : plan->ranks > 1 ? pair_lead(&core) + 2 * core.levels + core.folds : 1;
}

static uint32_t emit_outside(const struct ibshift_plan *plan, const struct pair_core *core,
                             uint32_t rank, uint32_t round, struct ibshift_step *out)
{
    if (round == 0) {
        emit_send(out, rank + 1, emit_blocks(IBSHIFT_SEND, 0, plan->ranks), 0, 0);
    } else {
        emit_recv(out, rank + 1, emit_blocks(IBSHIFT_RECV, 0, 1), core->levels + 1, 0, 1);
    }
    return 1;
}

static struct ibshift_step *emit_lead(const struct ibshift_plan *plan, const struct pair_core *core,
                                      uint32_t rank, uint32_t round, struct ibshift_step *step)
{
    struct emit_range all = emit_blocks(IBSHIFT_TMP, 0, plan->ranks);

    if (!core->folds) {
        return step;
    }
    if (round == 0) {
        all.first = plan->ranks;
        return emit_recv(step, rank - 1, all, 0, 0, 0);
    }
    step = emit_reduce(step, IBSHIFT_STEP_REDUCE, all, IBSHIFT_TMP, plan->ranks, 1, 0);
    return emit_with(step, IBSHIFT_SEND, 0);
}

static struct ibshift_step *emit_level(const struct ibshift_plan *plan,
                                       const struct pair_core *core, uint32_t round,
                                       struct ibshift_step *step)
{
    uint32_t lead = pair_lead(core), level = (round - lead) / 2, half = core->size >> (level + 1);
    uint32_t peer = core->rank ^ half, tag = level + (lead > 0);
    struct emit_range keep = blocks_of(core, core->rank & ~(half - 1), half);
    struct emit_range give = blocks_of(core, peer & ~(half - 1), half), in = keep;
    bool is_own = level == 0 && !core->folds; /* nothing is in TMP */
    bool is_last = half == 1 && !core->folds; /* what is kept is the result */

    in.first += plan->ranks;
    if ((round - lead) % 2 == 1) {
        step =
            emit_reduce(step, IBSHIFT_STEP_REDUCE, is_last ? emit_blocks(IBSHIFT_RECV, 0, 1) : keep,
                        IBSHIFT_TMP, in.first, round, is_last ? round : 0);
        return emit_with(step, is_own ? IBSHIFT_SEND : IBSHIFT_TMP, keep.first);
    }
    give.buf = is_own ? IBSHIFT_SEND : IBSHIFT_TMP;
    step = emit_recv(step, pair_rank(core, peer), in, tag, round, 0);
    return emit_send(step, pair_rank(core, peer), give, tag, round);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct pair_core core = pair_core(plan->ranks, rank);
    uint32_t lead = pair_lead(&core), last = lead + 2 * core.levels;
    struct ibshift_step *step = out;

    if (core.outside) {
        return emit_outside(plan, &core, rank, round, out);
    }
    if (plan->ranks == 1) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_SEND, 0, 0, 0);
        return 1;
    }
    if (round < lead || round == 0) {
        step = emit_lead(plan, &core, rank, round, step);
    }
    if (round >= lead && round < last) {
        step = emit_level(plan, &core, round, step);
    }
    if (round == last) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_TMP, rank, round, round);
        step = emit_send(step, rank - 1, emit_blocks(IBSHIFT_TMP, rank - 1, 1), core.levels + 1,
                         round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks == 1 || pair_core(plan->ranks, rank).outside ? 0 : 2 * plan->ranks;
}

const struct ibshift_alg ibshift_alg_reduce_scatter_recursive_halving = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "recursive_halving",
    .doc = "ranks at halving distance exchange the half that the other needs",
    .cost = "log2 P rounds, (P-1)m bytes; no power of two: 2 more, one of P m bytes",
    .instead = "linear",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
