/*
 * Recursive doubling (Thakur, Gropp 2003): in round i groups of 2^i ranks exchange all that they
 * have. When P is no power of two, the ranks beyond the largest one, Q, give their block to rank -
 * Q before and get everything after; in between a message goes in two parts, the blocks below Q
 * and the others.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t core = emit_power_below(plan->ranks), extra = plan->ranks - core;

    if (rank >= core) {
        return 2;
    }
    return plan->ranks == 1 ? 1 : emit_log2(core) + (extra > 0 ? 2 : 0);
}

/* The rank beyond the core gives its block, and gets all others around its own place. */
static uint32_t emit_outside(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                             struct ibshift_step *out)
{
    uint32_t core = emit_power_below(plan->ranks), peer = rank - core, last = emit_log2(core) + 1;
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
        return (uint32_t)(emit_send(step, peer, emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0) - out);
    }
    step = emit_recv(step, peer, emit_blocks(IBSHIFT_RECV, 0, rank), last, 0, 0);
    if (rank + 1 < plan->ranks) {
        step = emit_recv(step, peer, emit_blocks(IBSHIFT_RECV, rank + 1, plan->ranks - rank - 1),
                         last, 0, 0);
        step = emit_part(step, 1);
    }
    return (uint32_t)(step - out);
}

/* What the group of `size` ranks from `group` on has: its own blocks and those given to it. */
static struct ibshift_step *emit_group(const struct ibshift_plan *plan, struct ibshift_step *step,
                                       uint32_t peer, uint32_t group, uint32_t size, uint32_t round,
                                       bool sends)
{
    uint32_t core = emit_power_below(plan->ranks), extra = plan->ranks - core;
    struct emit_range range = emit_blocks(IBSHIFT_RECV, group, size);

    step = sends ? emit_send(step, peer, range, round, round)
                 : emit_recv(step, peer, range, round, 0, 0);
    if (group < extra) {
        range =
            emit_blocks(IBSHIFT_RECV, group + core, size < extra - group ? size : extra - group);
        step = sends ? emit_send(step, peer, range, round, round)
                     : emit_recv(step, peer, range, round, 0, 0);
        step = emit_part(step, 1);
    }
    return step;
}

static uint32_t emit_core(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                          struct ibshift_step *out)
{
    uint32_t core = emit_power_below(plan->ranks), extra = plan->ranks - core,
             outside = rank + core;
    uint32_t level = round - (extra > 0), size = UINT32_C(1) << level % 32;
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    if (extra > 0 && round == 0) {
        return (uint32_t)((rank < extra ? emit_recv(step, outside,
                                                    emit_blocks(IBSHIFT_RECV, outside, 1), 0, 0, 0)
                                        : step) -
                          out);
    }
    if (size < core) {
        uint32_t peer = rank ^ size;

        step = emit_group(plan, step, peer, peer & ~(size - 1), size, round, false);
        if (round == 0) { /* its own block is not in RECV yet */
            return (uint32_t)(emit_send(step, peer, emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0) - out);
        }
        return (uint32_t)(emit_group(plan, step, peer, rank & ~(size - 1), size, round, true) -
                          out);
    }
    if (rank < extra) {
        step = emit_send(step, outside, emit_blocks(IBSHIFT_RECV, 0, outside), round, round);
        if (outside + 1 < plan->ranks) {
            step = emit_send(step, outside,
                             emit_blocks(IBSHIFT_RECV, outside + 1, plan->ranks - outside - 1),
                             round, round);
            step = emit_part(step, 1);
        }
    }
    return (uint32_t)(step - out);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    return rank < emit_power_below(plan->ranks) ? emit_core(plan, rank, round, out)
                                                : emit_outside(plan, rank, round, out);
}

const struct ibshift_alg ibshift_alg_allgather_recursive_doubling = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "recursive_doubling",
    .doc = "groups that double in size each round exchange all they have",
    .cost = "log2 P rounds, (P-1)m bytes; no power of two: 2 more rounds",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
};
