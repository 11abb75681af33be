/*
 * Bine butterflies (De Sensi et al., "Bine trees: enhancing collective operations by optimizing communication locality", 2025), of the
 * same pairs as Swing (De Sensi et al., "Swing: short-cutting rings for higher bandwidth allreduce", 2024). Partners are 1, -1, 3, -5,
 * 11... places on, for odd ranks the other way: of the 2^i places between two ranks of recursive doubling a third is saved. Where
 * little is exchanged partners are far, and where much is they are near, so that few bytes pass between groups of near ranks,
 * wherever these begin.
 *
 *   allgather, 8 ranks: rank 0 exchanges 1 block with rank 3, 2 with rank 7, 4 with rank 1
 *
 * Blocks lie in TMP as they come, so that each message is one run, and get into their order in the end. Reduce_scatter is the same
 * backwards.
 */
#include "plan/alg_emit.h"

static uint32_t partner(const struct ibshift_plan *plan, uint32_t rank, uint32_t level)
{
    uint32_t twice = UINT32_C(2) << level;
    bool is_right = rank % 2 == level % 2;
    uint32_t distance = (level % 2 == 0 ? twice + 1 : twice - 1) / 3;

    return (is_right ? emit_add : emit_sub)(rank, distance, plan->ranks);
}

/* Of an allgather: levels come from above, the farthest first. */
static uint32_t level_of(const struct ibshift_plan *plan, uint32_t round)
{
    return emit_log2(plan->ranks) - 1 - round;
}

/* Whose block is in that slot of an allgather's TMP: bit j says that it passed on in round j. Back along its way. */
static uint32_t owner(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    while (slot > 0) {
        uint32_t bit = emit_power_below(slot);

        rank = partner(plan, rank, level_of(plan, emit_log2(bit)));
        slot -= bit;
    }
    return rank;
}

/* Rounds that copy all blocks. */
static uint32_t copies(const struct ibshift_plan *plan)
{
    return (plan->ranks + IBSHIFT_ROUND_STEPS - 1) / IBSHIFT_ROUND_STEPS;
}

static uint32_t gather_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return emit_log2(plan->ranks) + copies(plan);
}

static uint32_t gather_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                            struct ibshift_step *out)
{
    uint32_t levels = emit_log2(plan->ranks), have = UINT32_C(1) << round % 32, slot, end;
    struct ibshift_step *step = out;

    if (round < levels) {
        uint32_t peer = partner(plan, rank, level_of(plan, round));

        step = emit_recv(step, peer, emit_blocks(IBSHIFT_TMP, have, have), round, 0, 0);
        if (round == 0) {
            step = emit_copy(step, emit_blocks(IBSHIFT_TMP, 0, 1), IBSHIFT_SEND, 0, 0, 0);
        }
        step = emit_send(step, peer, emit_blocks(round == 0 ? IBSHIFT_SEND : IBSHIFT_TMP, 0, have),
                         round, round);
        return (uint32_t)(step - out);
    }
    slot = (round - levels) * IBSHIFT_ROUND_STEPS;
    end = slot + IBSHIFT_ROUND_STEPS < plan->ranks ? slot + IBSHIFT_ROUND_STEPS : plan->ranks;
    for (; slot < end; slot++) {
        uint32_t came = slot > 0 ? emit_log2(emit_power_below(slot)) + 1 : 0;

        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, owner(plan, rank, slot), 1),
                         slot > 0 ? IBSHIFT_TMP : IBSHIFT_SEND, slot, came, 0);
    }
    return (uint32_t)(step - out);
}

static uint32_t scatter_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? copies(plan) + 2 * emit_log2(plan->ranks) : 1;
}

/* What comes at a level is behind the slots that it is added to, P further on. */
static uint32_t scatter_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                             struct ibshift_step *out)
{
    uint32_t lead = copies(plan), level = (round - lead) / 2, keep, in, peer;
    struct ibshift_step *step = out;

    if (plan->ranks == 1) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_SEND, 0, 0, 0);
        return 1;
    }
    if (round < lead) {
        for (uint32_t slot = round * IBSHIFT_ROUND_STEPS;
             slot < plan->ranks && step < out + IBSHIFT_ROUND_STEPS; slot++) {
            step = emit_copy(step, emit_blocks(IBSHIFT_TMP, slot, 1), IBSHIFT_SEND,
                             owner(plan, rank, slot), 0, 0);
        }
        return (uint32_t)(step - out);
    }
    keep = plan->ranks >> (level + 1);
    in = plan->ranks + keep;
    peer = partner(plan, rank, level);
    if ((round - lead) % 2 == 0) {
        step = emit_recv(step, peer, emit_blocks(IBSHIFT_TMP, in, keep), level, 0, 0);
        step = emit_send(step, peer, emit_blocks(IBSHIFT_TMP, keep, keep), level, round);
        return (uint32_t)(step - out);
    }
    step = emit_reduce(step, IBSHIFT_STEP_REDUCE,
                       emit_blocks(keep > 1 ? IBSHIFT_TMP : IBSHIFT_RECV, 0, keep), IBSHIFT_TMP, in,
                       round, 0);
    return (uint32_t)(emit_with(step, IBSHIFT_TMP, 0) - out);
}

static uint32_t gather_tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? plan->ranks : 0;
}

static uint32_t scatter_tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? 2 * plan->ranks : 0;
}

static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    if (slot >= plan->ranks) { /* of a level: as the slot that it is added to */
        slot -= plan->ranks;
        slot -= slot > 0 ? emit_power_below(slot) : 0;
    }
    return owner(plan, rank, slot);
}

const struct ibshift_alg ibshift_alg_allgather_bine = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "bine",
    .doc = "pairs at distances of 1, -1, 3, -5, 11 exchange all they have, the farthest first",
    .cost = "log2 P rounds, (P-1)m bytes, of which few pass between groups; all are copied",
    .instead = "sparbit",
    .flags = IBSHIFT_ALG_POWER_OF_TWO | IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .rounds = gather_rounds,
    .emit = gather_emit,
    .tmp = gather_tmp,
    .tmp_block = tmp_block,
};

const struct ibshift_alg ibshift_alg_reduce_scatter_bine = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "bine",
    .doc = "pairs at distances of 1, -1, 3, -5, 11 exchange halves, the nearest first",
    .cost = "log2 P rounds, (P-1)m bytes, of which few pass between groups; all are copied",
    .instead = "linear",
    .flags = IBSHIFT_ALG_POWER_OF_TWO | IBSHIFT_ALG_COMMUTATIVE_ONLY | IBSHIFT_ALG_SIZES |
             IBSHIFT_ALG_IN_PLACE,
    .rounds = scatter_rounds,
    .emit = scatter_emit,
    .tmp = scatter_tmp,
    .tmp_block = tmp_block,
};
