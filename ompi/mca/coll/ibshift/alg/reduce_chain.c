/*
 * Pipelined chain towards the root: a rank folds its segment s into what comes from the right and
 * passes it to the left. When the operator commutes the chain ends at the root; else at rank 0,
 * which hands each segment on.
 */
#include "plan/alg_emit.h"

struct link {
    uint32_t left;
    uint32_t right;
    uint32_t behind; /* ranks to the right, as far as the chain reaches */
    bool first;      /* the chain begins here */
    bool last;       /* and ends here */
};

static struct link link_of(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t v = plan->commutative ? emit_sub(rank, plan->root, plan->ranks) : rank;

    return (struct link){emit_sub(rank, 1, plan->ranks), emit_add(rank, 1, plan->ranks),
                         plan->ranks - 1 - v, v == plan->ranks - 1, v == 0};
}

static bool is_apart(const struct ibshift_plan *plan)
{
    return !plan->commutative && plan->root != 0;
}

static uint32_t chain_rounds(const struct ibshift_plan *plan, struct link link)
{
    return plan->segments + (link.first ? 0 : 2);
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return chain_rounds(plan, link_of(plan, rank)) +
           (is_apart(plan) && rank == plan->root ? plan->segments : 0);
}

/* Segment s arrives in round s, is folded in round s + 1 and leaves in round s + 2. */
static struct ibshift_step *emit_chain(const struct ibshift_plan *plan, struct ibshift_step *step,
                                       uint32_t rank, struct link link, uint32_t round)
{
    uint32_t segments = plan->segments, folds = round - 1, leaves = round - (link.first ? 0 : 2);
    bool at_root = rank == plan->root && link.last;
    uint32_t to = link.last ? plan->root : link.left;

    if (!link.first && round < segments) {
        step = emit_recv(step, link.right, emit_blocks(IBSHIFT_TMP, round, 1),
                         link.behind - 1 + round, 0, 0);
    }
    if (!link.first && folds < segments) {
        step = at_root
                   ? emit_reduce(step, IBSHIFT_STEP_REDUCE_AFTER,
                                 emit_blocks(IBSHIFT_RECV, folds, 1), IBSHIFT_TMP, folds, round, 0)
                   : emit_reduce(step, IBSHIFT_STEP_REDUCE, emit_blocks(IBSHIFT_TMP, folds, 1),
                                 IBSHIFT_SEND, folds, round, 0);
        step = at_root ? emit_with(step, IBSHIFT_SEND, folds) : step;
    }
    if (!at_root && leaves < segments) {
        step = emit_send(step, to, emit_blocks(link.first ? IBSHIFT_SEND : IBSHIFT_TMP, leaves, 1),
                         link.behind + leaves, link.first ? 0 : round);
    }
    return step;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct link link = link_of(plan, rank);
    uint32_t segment = round - chain_rounds(plan, link);

    if (plan->ranks == 1) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, round, 1), IBSHIFT_SEND, round, 0, 0);
        return 1;
    }
    if (round < chain_rounds(plan, link)) {
        return (uint32_t)(emit_chain(plan, out, rank, link, round) - out);
    }
    emit_recv(out, 0, emit_blocks(IBSHIFT_RECV, segment, 1), plan->ranks - 1 + segment,
              chain_rounds(plan, link), chain_rounds(plan, link));
    return 1;
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return link_of(plan, rank).first ? 0 : plan->segments;
}

const struct ibshift_alg ibshift_alg_reduce_chain = {
    .collective = IBSHIFT_REDUCE,
    .name = "chain",
    .doc = "pipelined chain of segments towards the root",
    .cost = "S+2P rounds, S messages of n/S bytes, S reductions",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_SEGMENTS,
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_segment,
    .tmp = tmp,
};
