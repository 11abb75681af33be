/*
 * A plan whose rounds are kept once they were emitted: for those who turn the walks of all its ranks, each of which comes back to
 * a round several times. A round of a plan of plans costs hundreds of instructions, a look at a kept one a few.
 */
#ifndef IBSHIFT_PLAN_EMITTED_H
#define IBSHIFT_PLAN_EMITTED_H

#include "plan/alg.h"

struct ibshift_emitted_round {
    uint32_t at, count; /* count: UINT32_MAX: not emitted yet */
};

/* All zero at first; it may begin again and again, and keeps its memory for that. */
struct ibshift_emitted {
    struct ibshift_plan plan; /* the first member: emit() finds the rest by it */
    struct ibshift_alg alg;   /* the row, but rounds() and emit() look here */
    const struct ibshift_alg *of;
    const struct ibshift_plan *of_plan;
    uint32_t *first; /* by rank, and one more: where its rounds begin */
    struct ibshift_emitted_round *rounds;
    struct ibshift_step *steps;
    size_t first_room, rounds_room, steps_room, steps_count;
};

/* False: it has more rounds than `most`, or there is no memory. Else emitted->alg and emitted->plan are the same as alg and plan,
 * for one thread, until the next begin; both outlive that. */
bool ibshift_emitted_begin(struct ibshift_emitted *emitted, const struct ibshift_alg *alg,
                           const struct ibshift_plan *plan, uint32_t most);
void ibshift_emitted_free(struct ibshift_emitted *emitted);

#endif
