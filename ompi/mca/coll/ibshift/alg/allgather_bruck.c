/*
 * Bruck with k ports (Bruck, Ho, Kipnis, Upfal, Weathersby 1997): TMP block i is the block of rank
 * + i. In round i, with (k+1)^i blocks there, a rank sends them to the ranks j (k+1)^i to its
 * left, 1 <= j <= k; the last round sends only what is missing. At last TMP is turned into place.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return emit_digits(plan->ranks, plan->radix + 1) + 1;
}

/* All but the own block, which is in its place since round 0. */
static uint32_t emit_rotation(uint32_t ranks, uint32_t rank, uint32_t round,
                              struct ibshift_step *out)
{
    uint32_t behind = ranks - rank - 1;
    struct ibshift_step *step = out;

    if (behind > 0) {
        step =
            emit_copy(step, emit_blocks(IBSHIFT_RECV, rank + 1, behind), IBSHIFT_TMP, 1, round, 0);
    }
    if (rank > 0) {
        step =
            emit_copy(step, emit_blocks(IBSHIFT_RECV, 0, rank), IBSHIFT_TMP, behind + 1, round, 0);
    }
    return (uint32_t)(step - out);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, have = emit_power(plan->radix + 1, round), hop;
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
        step = ranks > 2 ? emit_copy(step, emit_blocks(IBSHIFT_TMP, 0, 1), IBSHIFT_SEND, 0, 0, 0)
                         : step;
    } else if (have >= ranks) {
        return emit_rotation(ranks, rank, round, out);
    }
    hop = have;
    for (uint32_t j = 0; j < plan->radix && hop < ranks; j++, hop += have) {
        uint32_t count = have < ranks - hop ? have : ranks - hop;

        step = emit_recv(step, emit_add(rank, hop, ranks), emit_blocks(IBSHIFT_TMP, hop, count),
                         round, 0, 0);
        step =
            emit_send(step, emit_sub(rank, hop, ranks),
                      emit_blocks(round == 0 ? IBSHIFT_SEND : IBSHIFT_TMP, 0, count), round, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    return emit_add(rank, slot, plan->ranks);
}

const struct ibshift_alg ibshift_alg_allgather_bruck = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "bruck",
    .doc = "k messages per round to the left with all blocks so far, then one rotation",
    .cost = "log_{k+1} P rounds, k messages per round, (P-1)m bytes, P m copied",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = emit_tmp_a_rank,
    .tmp_block = tmp_block,
};
