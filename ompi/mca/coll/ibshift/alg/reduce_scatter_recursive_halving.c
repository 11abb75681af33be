/*
 * Recursive halving for any number of ranks, in as many rounds and bytes as for the next power of two: Träff, "Optimal, non-pipelined
 * reduce-scatter and allreduce algorithms" (2024). A rank works on the blocks from its own on, around the ring: half of them, rounded
 * up, it keeps, and the others' partial sums go to the rank that is so far behind. With a power of two, ranks at that distance
 * exchange the aligned halves instead, so that no run of blocks wraps.
 *
 *   7 ranks: rank r sends blocks r+4..r+6 to r+4, then r+2, r+3 to r+2, then r+1 to r+1
 */
#include "plan/alg_emit.h"

/* TMP slot i is the partial block origin + i, slot P + i what comes for it. */
struct level {
    uint32_t origin, give, kept, keep; /* slots; how many are kept, how many are given */
    uint32_t given, to, from;
};

static bool is_power(uint32_t ranks)
{
    return (ranks & (ranks - 1)) == 0;
}

static struct level level_of(uint32_t ranks, uint32_t rank, uint32_t level)
{
    uint32_t size = (ranks + (1u << level) - 1) >> level, kept = (size + 1) / 2;
    struct level l = {.origin = rank, .give = kept, .kept = kept, .given = size - kept};

    l.to = emit_add(rank, kept, ranks);
    l.from = emit_sub(rank, kept, ranks);
    if (is_power(ranks)) {
        l.to = l.from = rank ^ kept;
        l.origin = 0;
        l.keep = rank & ~(kept - 1);
        l.give = l.to & ~(kept - 1);
    }
    return l;
}

/* Of `count` blocks around the ring from the first on: those before rank 0's. */
static uint32_t before_end(uint32_t ranks, uint32_t first, uint32_t count)
{
    return count < ranks - first ? count : ranks - first;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? 2 * emit_digits(plan->ranks, 2) : 1;
}

/* The blocks of SEND that wrap go in two messages. */
static struct ibshift_step *emit_exchange(uint32_t ranks, const struct level *l, uint32_t round,
                                          struct ibshift_step *step)
{
    uint32_t in = ranks + l->keep, count = l->given, own = l->give, theirs = l->given;
    uint32_t first = emit_add(l->origin, l->keep, ranks), tag = round / 2;
    enum ibshift_buffer from = IBSHIFT_TMP;

    if (round == 0) {
        from = IBSHIFT_SEND;
        own = emit_add(l->origin, l->give, ranks);
        theirs = before_end(ranks, first, l->given);
        count = before_end(ranks, own, l->given);
    }
    step = emit_recv(step, l->from, emit_blocks(IBSHIFT_TMP, in, theirs), tag, round, 0);
    if (theirs < l->given) {
        step = emit_recv(step, l->from, emit_blocks(IBSHIFT_TMP, in + theirs, l->given - theirs),
                         tag, round, 0);
        step = emit_part(step, 1);
    }
    step = emit_send(step, l->to, emit_blocks(from, own, count), tag, round);
    if (count < l->given) {
        step = emit_send(step, l->to, emit_blocks(from, 0, l->given - count), tag, round);
        step = emit_part(step, 1);
    }
    return step;
}

/* With the own blocks of SEND in the first level, of which the one that nothing came for is copied. */
static struct ibshift_step *emit_sums(uint32_t ranks, const struct level *l, uint32_t round,
                                      struct ibshift_step *step)
{
    uint32_t first = emit_add(l->origin, l->keep, ranks), in = ranks + l->keep, count = l->given;
    bool is_last = l->kept == 1;
    struct emit_range to =
        emit_blocks(is_last ? IBSHIFT_RECV : IBSHIFT_TMP, is_last ? 0 : l->keep, count);

    if (round > 1) {
        step =
            emit_reduce(step, IBSHIFT_STEP_REDUCE, to, IBSHIFT_TMP, in, round, is_last ? round : 0);
        return emit_with(step, IBSHIFT_TMP, l->keep);
    }
    to.count = before_end(ranks, first, count);
    step = emit_reduce(step, IBSHIFT_STEP_REDUCE, to, IBSHIFT_TMP, in, round, is_last ? round : 0);
    step = emit_with(step, IBSHIFT_SEND, first);
    if (to.count < count) {
        step = emit_reduce(step, IBSHIFT_STEP_REDUCE,
                           emit_blocks(IBSHIFT_TMP, to.count, count - to.count), IBSHIFT_TMP,
                           in + to.count, round, 0);
        step = emit_with(step, IBSHIFT_SEND, 0);
    }
    if (l->kept > count) {
        step = emit_copy(step, emit_blocks(IBSHIFT_TMP, count, 1), IBSHIFT_SEND,
                         emit_add(first, count, ranks), 0, 0);
    }
    return step;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct level l;

    if (plan->ranks == 1) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, 0, 1), IBSHIFT_SEND, 0, 0, 0);
        return 1;
    }
    l = level_of(plan->ranks, rank, round / 2);
    return (uint32_t)((round % 2 == 0 ? emit_exchange : emit_sums)(plan->ranks, &l, round, out) -
                      out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks == 1 ? 0 : 2 * plan->ranks;
}

static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    return (slot + (is_power(plan->ranks) ? 0 : rank)) % plan->ranks;
}

const struct ibshift_alg ibshift_alg_reduce_scatter_recursive_halving = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "recursive_halving",
    .doc = "ranks at halving distance get the half that they need, around a ring",
    .cost = "log2 P rounds, (P-1)m bytes",
    .instead = "linear",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
