/*
 * Ring: the partial result of block b starts at rank b + 1 and goes around to rank b, every rank
 * folding its own into it.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? 2 * (plan->ranks - 1) : 1;
}

/* Turn t: the partial block rank - 1 - t leaves, the one before it comes; it is folded in the next
 * round. */
static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, turn = round / 2, block, next;
    struct ibshift_step *step = out;

    if (ranks == 1) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_SEND, 0, 0, 0);
        return 1;
    }
    block = emit_sub(rank, 1 + turn, ranks);
    next = emit_sub(block, 1, ranks);
    if (round == 2 * ranks - 3) {
        step = emit_reduce(step, IBSHIFT_STEP_REDUCE, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_TMP,
                           rank, round, round);
        return (uint32_t)(emit_with(step, IBSHIFT_SEND, rank) - out);
    }
    if (round % 2 == 1) {
        emit_reduce(out, IBSHIFT_STEP_REDUCE, emit_blocks(IBSHIFT_TMP, next, 1), IBSHIFT_SEND, next,
                    round, 0);
        return 1;
    }
    step = emit_recv(step, emit_sub(rank, 1, ranks), emit_blocks(IBSHIFT_TMP, next, 1), turn, 0, 0);
    step = emit_send(step, emit_add(rank, 1, ranks),
                     emit_blocks(turn == 0 ? IBSHIFT_SEND : IBSHIFT_TMP, block, 1), turn, round);
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_reduce_scatter_ring = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "ring",
    .doc = "partial sums go around the ring, and each rank adds its own",
    .cost = "P-1 rounds, P-1 messages of m bytes, P-1 reductions",
    .instead = "linear",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .rounds = rounds,
    .emit = emit,
    .tmp = emit_tmp_a_rank,
};
