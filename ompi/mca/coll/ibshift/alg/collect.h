/*
 * Linear reduction: the rank that wants a result takes the operand of every rank and folds it into
 * `acc`, which is one block. When the operator commutes, operand j is that of rank - 1 - j, so that no two ranks take
 * from the same one at a time, and its own comes last: acc begins as what arrives first, and nothing
 * is copied. Else operands come from the highest rank down, each to the left of what is there.
 * Operand j arrives in round j and is folded in round j + 1; TMP is a ring of slots, so that a few
 * receives are posted ahead.
 */
#ifndef IBSHIFT_ALG_COLLECT_H
#define IBSHIFT_ALG_COLLECT_H

#include "plan/alg_emit.h"

enum { COLLECT_SLOTS = 8 };

/* Whose operand is number j for this rank; and, the other way round, whose operand number j this
 * rank's is. */
static inline uint32_t collect_from(const struct ibshift_plan *plan, uint32_t rank, uint32_t j)
{
    return plan->commutative ? emit_sub(rank, j + 1, plan->ranks) : plan->ranks - 1 - j;
}

/* Under which number `rank` takes the operand of `from`, another one. */
static inline uint32_t collect_number(const struct ibshift_plan *plan, uint32_t rank, uint32_t from)
{
    return plan->commutative ? emit_sub(rank, from, plan->ranks) - 1 : plan->ranks - 1 - from;
}

static inline uint32_t collect_tmp(const struct ibshift_plan *plan)
{
    return plan->ranks - 1 < COLLECT_SLOTS ? plan->ranks - 1 : COLLECT_SLOTS;
}

/* As functions of an algorithm: every rank has the slots, and a slot the size of the rank's own block. */
static inline uint32_t collect_tmp_of(const struct ibshift_plan *plan, uint32_t rank)
{
    return collect_tmp(plan);
}

static inline uint32_t collect_tmp_block(const struct ibshift_plan *plan, uint32_t rank,
                                         uint32_t slot)
{
    return rank;
}

/* The receiving side of one round, 0 <= round <= ranks; `own` is this rank's operand in SEND. */
static inline struct ibshift_step *collect_round(const struct ibshift_plan *plan,
                                                 struct ibshift_step *step, uint32_t rank,
                                                 uint32_t round, uint32_t own,
                                                 struct emit_range acc)
{
    uint32_t slots = collect_tmp(plan), from;

    if (round < plan->ranks) {
        from = collect_from(plan, rank, round);
        if (from != rank) {
            uint32_t reused =
                round >= slots ? round - slots + 2 : 0; /* the fold that empties the slot */
            struct emit_range to = round == 0 ? acc : emit_blocks(IBSHIFT_TMP, round % slots, 1);

            step = emit_recv(step, from, to, round, reused < round ? reused : round, 0);
        } else if (round == 0) {
            step = emit_copy(step, acc, IBSHIFT_SEND, own, 0, 0);
        }
    }
    if (round >= 2) {
        from = collect_from(plan, rank, round - 1);
        step = from == rank
                   ? emit_reduce(step, IBSHIFT_STEP_REDUCE, acc, IBSHIFT_SEND, own, round, 0)
                   : emit_reduce(step, IBSHIFT_STEP_REDUCE, acc, IBSHIFT_TMP, (round - 1) % slots,
                                 round, 0);
    }
    return step;
}

/* Both sides of one round where rank r wants the sum of all ranks' blocks r of SEND. */
static inline struct ibshift_step *collect_exchange(const struct ibshift_plan *plan,
                                                    struct ibshift_step *step, uint32_t rank,
                                                    uint32_t round, struct emit_range acc)
{
    uint32_t to =
        plan->commutative && round < plan->ranks ? emit_add(rank, round, plan->ranks) : round;

    step = collect_round(plan, step, rank, round, rank, acc);
    if (round < plan->ranks && to != rank) {
        step = emit_send(step, to, emit_blocks(IBSHIFT_SEND, to, 1), collect_number(plan, to, rank),
                         0);
    }
    return step;
}

#endif
