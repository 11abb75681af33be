/*
 * Ring (Patarasu, Yuan 2009): P pieces; each travels once around while every rank folds its own
 * into it, and once more to be stored.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? 3 * (plan->ranks - 1) : 1;
}

/* Turn t in two rounds: piece rank - t leaves and the next one comes to TMP; that one is folded. */
static struct ibshift_step *emit_fold(uint32_t ranks, uint32_t rank, uint32_t round,
                                      struct ibshift_step *step)
{
    uint32_t turn = round / 2, piece = emit_sub(rank, turn, ranks),
             next = emit_sub(piece, 1, ranks);

    if (round % 2 == 1) {
        step = emit_reduce(step, IBSHIFT_STEP_REDUCE, emit_blocks(IBSHIFT_RECV, next, 1),
                           IBSHIFT_TMP, next, round, 0);
        return emit_with(step, IBSHIFT_SEND, next);
    }
    step = emit_recv(step, emit_sub(rank, 1, ranks), emit_blocks(IBSHIFT_TMP, next, 1), turn, 0, 0);
    return emit_send(step, emit_add(rank, 1, ranks),
                     emit_blocks(turn == 0 ? IBSHIFT_SEND : IBSHIFT_RECV, piece, 1), turn, round);
}

/* Turn t: piece rank + 1 - t, complete, leaves; the one before it comes to where turn t's send was
 * read. */
static struct ibshift_step *emit_store(uint32_t ranks, uint32_t rank, uint32_t turn,
                                       struct ibshift_step *step)
{
    uint32_t piece = emit_sub(rank, turn, ranks), round = 2 * (ranks - 1) + turn;

    step = emit_recv(step, emit_sub(rank, 1, ranks), emit_blocks(IBSHIFT_RECV, piece, 1),
                     ranks - 1 + turn, 2 * turn, 2 * turn + 1);
    return emit_send(step, emit_add(rank, 1, ranks),
                     emit_blocks(IBSHIFT_RECV, emit_add(piece, 1, ranks), 1), ranks - 1 + turn,
                     round);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks;
    struct ibshift_step *step = out;

    if (ranks == 1) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_SEND, 0, 0, 0);
    } else if (round < 2 * (ranks - 1)) {
        step = emit_fold(ranks, rank, round, step);
    } else {
        step = emit_store(ranks, rank, round - 2 * (ranks - 1), step);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allreduce_ring = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "ring",
    .doc = "P parts go around the ring twice, first reduced, then stored",
    .cost = "2(P-1) rounds, 2n(P-1)/P bytes",
    .instead = "recursive_doubling",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_rank,
    .tmp = emit_tmp_a_rank,
};
