/*
 * Rabenseifner: reduction by halving (halving.h), then the pieces are put together in the opposite
 * order. Cost: 2 log2 P rounds, 2 n (P - 1) / P bytes, n (P - 1) / P reduced; no power of two: 2
 * more rounds of n bytes. Any P, any operator.
 */
#include "alg/halving.h"

static struct halving halving_of(const struct ibshift_plan *plan, uint32_t rank)
{
    return (struct halving){pair_core(plan->ranks, rank), rank, IBSHIFT_RECV, 0};
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = halving_of(plan, rank);

    if (h.core.outside) {
        return 2;
    }
    return plan->ranks == 1 ? 1 : halving_rounds(&h) + h.core.levels + h.core.folds;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct halving h = halving_of(plan, rank);
    uint32_t halved = halving_rounds(&h), turn = round - halved, level, peer, tag;
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, h.core.size);
    struct ibshift_step *step = out;

    if (round < halved || plan->ranks == 1) {
        return (uint32_t)(halving_round(&h, step, round) - out);
    }
    tag = 2 * h.core.levels + 1;
    if (h.core.outside) {
        emit_recv(step, rank + 1, all, tag, 0, 1);
        return 1;
    }
    if (turn == h.core.levels) {
        emit_send(step, rank - 1, all, tag, round);
        return 1;
    }
    level = h.core.levels - 1 - turn;
    peer = h.core.rank ^ UINT32_C(1) << level;
    tag = h.core.levels + 1 + turn;
    step = emit_recv(step, pair_rank(&h.core, peer), pair_half(&h.core, peer, level + 1), tag,
                     halved, halved);
    step = emit_send(step, pair_rank(&h.core, peer), pair_half(&h.core, h.core.rank, level + 1),
                     tag, round);
    return (uint32_t)(step - out);
}

static uint32_t pieces(const struct ibshift_plan *plan)
{
    return emit_power_below(plan->ranks);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = halving_of(plan, rank);

    return plan->ranks == 1 || h.core.outside ? 0 : h.core.size;
}

const struct ibshift_alg ibshift_alg_allreduce_rabenseifner = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "rabenseifner",
    .doc = "reduce_scatter by recursive halving, then an allgather by doubling",
    .cost = "2 log2 P rounds, 2n(P-1)/P bytes; no power of two: 2 rounds of n bytes more",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
};
