/*
 * Rabenseifner: reduction by halving (halving.h), then the pieces go to the root along the same
 * levels backwards: of two partners, the one whose bit differs from the root's gives what it has.
 * Cost: 2 log2 P rounds, 2 n (P - 1) / P bytes at the root; no power of two: 1 or 2 more rounds of
 * n bytes. Any P, any root, any operator.
 */
#include "alg/halving.h"

static struct halving halving_of(const struct ibshift_plan *plan, uint32_t rank)
{
    bool root = rank == plan->root;
    struct pair_core core = pair_core(plan->ranks, rank);

    return (struct halving){core, rank, root ? IBSHIFT_RECV : IBSHIFT_TMP, root ? 0 : core.size};
}

/* Turns in which a core rank takes part: until it gives. */
static uint32_t turns(const struct halving *h, uint32_t root)
{
    uint32_t turn = 0, different = h->core.rank ^ root;

    while (turn < h->core.levels && (different >> (h->core.levels - 1 - turn) & 1) == 0) {
        turn++;
    }
    return turn < h->core.levels ? turn + 1 : turn;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = halving_of(plan, rank);
    struct pair_core root = pair_core(plan->ranks, plan->root);

    if (h.core.outside) {
        return rank == plan->root ? 2 : 1;
    }
    return plan->ranks == 1 ? 1
                            : halving_rounds(&h) + turns(&h, root.rank) +
                                  (root.outside && rank == plan->root + 1);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct halving h = halving_of(plan, rank);
    struct pair_core root = pair_core(plan->ranks, plan->root);
    uint32_t halved = halving_rounds(&h), turn = round - halved, level, peer;
    struct emit_range all = emit_blocks(h.acc, 0, h.core.size), piece;

    if (round < halved || plan->ranks == 1) {
        return (uint32_t)(halving_round(&h, out, round) - out);
    }
    if (h.core.outside) {
        emit_recv(out, rank + 1, all, 2 * h.core.levels + 1, 0, 1);
        return 1;
    }
    if (turn == h.core.levels) {
        emit_send(out, rank - 1, all, 2 * h.core.levels + 1, round);
        return 1;
    }
    level = h.core.levels - 1 - turn;
    peer = h.core.rank ^ UINT32_C(1) << level;
    if (((h.core.rank ^ root.rank) >> level & 1) == 0) {
        piece = pair_half(&h.core, peer, level + 1);
        piece.buf = h.acc;
        emit_recv(out, pair_rank(&h.core, peer), piece, h.core.levels + 1 + turn, halved, halved);
    } else {
        piece = pair_half(&h.core, h.core.rank, level + 1);
        piece.buf = h.acc;
        emit_send(out, pair_rank(&h.core, peer), piece, h.core.levels + 1 + turn, round);
    }
    return 1;
}

static uint32_t pieces(const struct ibshift_plan *plan)
{
    return emit_power_below(plan->ranks);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = halving_of(plan, rank);

    return plan->ranks == 1 || h.core.outside ? 0 : h.in + h.core.size;
}

const struct ibshift_alg ibshift_alg_reduce_rabenseifner = {
    .collective = IBSHIFT_REDUCE,
    .name = "rabenseifner",
    .doc = "reduce_scatter by recursive halving, then a gather to the root",
    .cost = "2 log2 P rounds, 2n(P-1)/P bytes; no power of two: 2 rounds of n bytes more",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
};
