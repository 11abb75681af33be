/*
 * Binomial scatter of P pieces, then a ring in which no piece travels to a rank that has it from
 * the scatter (van de Geijn; Thakur, Rabenseifner, Gropp 2005).
 */
#include "plan/alg_emit.h"
#include "alg/tree.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t v = emit_sub(rank, plan->root, plan->ranks);

    return (v != 0) + tree_seat(v, plan->ranks, 2).below + plan->ranks - 1;
}

static uint32_t emit_scatter(const struct ibshift_plan *plan, uint32_t v, struct tree_seat seat,
                             uint32_t round, struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, level = seat.below - 1 - (round - (v != 0));
    uint32_t place = tree_place(level, 2), child = v + place;

    if (v != 0 && round == 0) {
        emit_recv(out, emit_add(tree_parent(v, seat, 2), plan->root, ranks),
                  emit_blocks(IBSHIFT_RECV, v, tree_end(v, seat.place, ranks) - v),
                  seat.total - 1 - seat.below, 0, 0);
        return 1;
    }
    if (child >= ranks) {
        return 0;
    }
    emit_send(out, emit_add(child, plan->root, ranks),
              emit_blocks(IBSHIFT_RECV, child, tree_end(child, place, ranks) - child),
              seat.total - 1 - level, v != 0);
    return 1;
}

/* Whether v has the piece from the scatter. */
static bool has_piece(uint32_t v, uint32_t piece, uint32_t ranks)
{
    return piece >= v && piece < tree_end(v, tree_seat(v, ranks, 2).place, ranks);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, v = emit_sub(rank, plan->root, ranks);
    struct tree_seat seat = tree_seat(v, ranks, 2);
    uint32_t scatter = (v != 0) + seat.below, turn, piece;
    struct ibshift_step *step = out;

    if (round < scatter) {
        return emit_scatter(plan, v, seat, round, out);
    }
    turn = round - scatter;
    piece = emit_sub(v, turn, ranks);
    if (!has_piece(v, emit_sub(piece, 1, ranks), ranks)) {
        step = emit_recv(step, emit_sub(rank, 1, ranks),
                         emit_blocks(IBSHIFT_RECV, emit_sub(piece, 1, ranks), 1), seat.total + turn,
                         0, 0);
    }
    if (!has_piece(emit_add(v, 1, ranks), piece, ranks)) {
        step = emit_send(step, emit_add(rank, 1, ranks), emit_blocks(IBSHIFT_RECV, piece, 1),
                         seat.total + turn, round);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_bcast_scatter_allgather = {
    .collective = IBSHIFT_BCAST,
    .name = "scatter_allgather",
    .doc = "binomial scatter of P parts, then a ring",
    .cost = "log2 P + P-1 rounds, about 2n bytes",
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_rank,
};
