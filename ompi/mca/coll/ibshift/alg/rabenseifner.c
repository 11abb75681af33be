/*
 * Rabenseifner's reductions (2004). Vectors are halved level by level between core ranks (pair.h) at
 * doubling distance, each keeping the half that its bit says, until every core rank has one piece of
 * the result; nearest first, so that operands keep their order. Then the pieces are put together in
 * the opposite order, on all ranks or at the root: there, of two partners, the one whose bit differs
 * from the root's gives what it has.
 */
#include "alg/pair.h"

/* acc holds the partial vector; TMP blocks of the same numbers take what comes. */
struct halving {
    struct pair_core core;
    uint32_t rank;
    enum ibshift_buffer acc; /* blocks 0 .. core.size - 1 */
    uint32_t in;             /* first TMP block of what comes */
};

static inline uint32_t halved_rounds(const struct halving *h)
{
    return h->core.outside ? 1 : pair_lead(&h->core) + 2 * h->core.levels;
}

static inline struct emit_range all_of(const struct halving *h)
{
    return emit_blocks(h->acc, 0, h->core.size);
}

static inline struct ibshift_step *emit_lead(const struct halving *h, struct ibshift_step *step,
                                             uint32_t round)
{
    struct emit_range in = emit_blocks(IBSHIFT_TMP, h->in, h->core.size);

    if (h->core.outside) {
        return emit_send(step, h->rank + 1, emit_blocks(IBSHIFT_SEND, 0, h->core.size), 0, 0);
    }
    if (!h->core.folds) {
        return h->core.levels == 0 ? emit_copy(step, all_of(h), IBSHIFT_SEND, 0, 0, 0) : step;
    }
    if (round == 0) {
        return emit_recv(step, h->rank - 1, in, 0, 0, 0);
    }
    step = emit_reduce(step, IBSHIFT_STEP_REDUCE, all_of(h), IBSHIFT_TMP, h->in, 1, 0);
    return emit_with(step, IBSHIFT_SEND, 0);
}

/* All steps of a round below halved_rounds(). In line, like the next one: buffers are known in each row. */
__attribute__((always_inline)) static inline struct ibshift_step *
emit_halving(const struct halving *h, struct ibshift_step *step, uint32_t round)
{
    uint32_t lead = pair_lead(&h->core), level, peer;
    struct emit_range keep, give;
    bool is_own;

    if (h->core.outside || round < lead || round == 0) {
        step = emit_lead(h, step, round);
    }
    if (h->core.outside || round < lead || h->core.size == 1) {
        return step;
    }
    level = (round - lead) / 2;
    peer = h->core.rank ^ UINT32_C(1) << level;
    keep = pair_half(&h->core, h->core.rank, level + 1);
    give = pair_half(&h->core, peer, level + 1);
    is_own = level == 0 && !h->core.folds; /* acc is empty */
    if ((round - lead) % 2 == 1) {
        keep.buf = h->acc;
        step =
            emit_reduce(step, peer < h->core.rank ? IBSHIFT_STEP_REDUCE : IBSHIFT_STEP_REDUCE_AFTER,
                        keep, IBSHIFT_TMP, h->in + keep.first, round, 0);
        return is_own ? emit_with(step, IBSHIFT_SEND, keep.first) : step;
    }
    give.buf = is_own ? IBSHIFT_SEND : h->acc;
    step = emit_recv(step, pair_rank(&h->core, peer),
                     emit_blocks(IBSHIFT_TMP, h->in + keep.first, keep.count), level + (lead > 0),
                     round, 0);
    return emit_send(step, pair_rank(&h->core, peer), give, level + (lead > 0), round);
}

/* A round after the halving: which of the two partners receives, and which sends. */
__attribute__((always_inline)) static inline struct ibshift_step *
emit_joining(const struct halving *h, struct ibshift_step *step, uint32_t round, uint32_t root,
             bool to_all)
{
    uint32_t halved = halved_rounds(h), turn = round - halved, levels = h->core.levels;
    uint32_t level, peer;
    struct emit_range theirs, ours;
    bool is_far;

    if (h->core.outside) {
        return emit_recv(step, h->rank + 1, all_of(h), 2 * levels + 1, 0, 1);
    }
    if (turn == levels) {
        return emit_send(step, h->rank - 1, all_of(h), 2 * levels + 1, round);
    }
    level = levels - 1 - turn;
    peer = h->core.rank ^ UINT32_C(1) << level;
    is_far = !to_all && ((h->core.rank ^ root) >> level & 1) != 0;
    theirs = pair_half(&h->core, peer, level + 1);
    ours = pair_half(&h->core, h->core.rank, level + 1);
    theirs.buf = ours.buf = h->acc;
    peer = pair_rank(&h->core, peer);
    step = is_far ? step : emit_recv(step, peer, theirs, levels + 1 + turn, halved, halved);
    return is_far || to_all ? emit_send(step, peer, ours, levels + 1 + turn, round) : step;
}

static uint32_t pieces(const struct ibshift_plan *plan)
{
    return emit_power_below(plan->ranks);
}

static inline uint32_t tmp_of(const struct ibshift_plan *plan, const struct halving *h)
{
    return plan->ranks == 1 || h->core.outside ? 0 : h->in + h->core.size;
}

static struct halving allreduce_of(const struct ibshift_plan *plan, uint32_t rank)
{
    return (struct halving){pair_core(plan->ranks, rank), rank, IBSHIFT_RECV, 0};
}

static uint32_t allreduce_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = allreduce_of(plan, rank);

    if (h.core.outside) {
        return 2;
    }
    return plan->ranks == 1 ? 1 : halved_rounds(&h) + h.core.levels + h.core.folds;
}

static uint32_t allreduce_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                               struct ibshift_step *out)
{
    struct halving h = allreduce_of(plan, rank);
    bool is_halving = round < halved_rounds(&h) || plan->ranks == 1;

    return (uint32_t)((is_halving ? emit_halving(&h, out, round)
                                  : emit_joining(&h, out, round, 0, true)) -
                      out);
}

static uint32_t allreduce_tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = allreduce_of(plan, rank);

    return tmp_of(plan, &h);
}

static struct halving reduce_of(const struct ibshift_plan *plan, uint32_t rank)
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

static uint32_t reduce_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = reduce_of(plan, rank);
    struct pair_core root = pair_core(plan->ranks, plan->root);

    if (h.core.outside) {
        return rank == plan->root ? 2 : 1;
    }
    return plan->ranks == 1 ? 1
                            : halved_rounds(&h) + turns(&h, root.rank) +
                                  (root.outside && rank == plan->root + 1);
}

static uint32_t reduce_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                            struct ibshift_step *out)
{
    struct halving h = reduce_of(plan, rank);
    uint32_t root = pair_core(plan->ranks, plan->root).rank;
    bool is_halving = round < halved_rounds(&h) || plan->ranks == 1;

    return (uint32_t)((is_halving ? emit_halving(&h, out, round)
                                  : emit_joining(&h, out, round, root, false)) -
                      out);
}

static uint32_t reduce_tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    struct halving h = reduce_of(plan, rank);

    return tmp_of(plan, &h);
}

const struct ibshift_alg ibshift_alg_reduce_rabenseifner = {
    .collective = IBSHIFT_REDUCE,
    .name = "rabenseifner",
    .doc = "reduce_scatter by recursive halving, then a gather to the root",
    .cost = "2 log2 P rounds, 2n(P-1)/P bytes; no power of two: 2 rounds of n bytes more",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = reduce_rounds,
    .emit = reduce_emit,
    .pieces = pieces,
    .tmp = reduce_tmp,
};

const struct ibshift_alg ibshift_alg_allreduce_rabenseifner = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "rabenseifner",
    .doc = "reduce_scatter by recursive halving, then an allgather by doubling",
    .cost = "2 log2 P rounds, 2n(P-1)/P bytes; no power of two: 2 rounds of n bytes more",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = allreduce_rounds,
    .emit = allreduce_emit,
    .pieces = pieces,
    .tmp = allreduce_tmp,
};
