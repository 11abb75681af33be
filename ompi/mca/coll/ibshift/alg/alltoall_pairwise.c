/*
 * Pairwise exchange: one partner per round, and the next round begins when this one has ended.
 * Partners are rank ^ round when P is a power of two; else a rank sends to rank + round and
 * receives from rank - round.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    bool power = (plan->ranks & (plan->ranks - 1)) == 0;
    uint32_t from = power ? rank ^ round : emit_sub(rank, round, plan->ranks);
    uint32_t to = power ? rank ^ round : emit_add(rank, round, plan->ranks);

    if (round == 0) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, rank, 0, 0);
        return 1;
    }
    emit_recv(out, from, emit_blocks(IBSHIFT_RECV, from, 1), round - 1, round, round);
    emit_send(out + 1, to, emit_blocks(IBSHIFT_SEND, to, 1), round - 1, round);
    out[1].drain = round;
    return 2;
}

const struct ibshift_alg ibshift_alg_alltoall_pairwise = {
    .collective = IBSHIFT_ALLTOALL,
    .name = "pairwise",
    .doc = "one partner per round, rounds in step",
    .cost = "P-1 rounds, 1 message of m bytes each",
    .flags = IBSHIFT_ALG_SIZES,
    .rounds = rounds,
    .emit = emit,
};
