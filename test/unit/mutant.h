/* Good plans with one mistake each, for the checker to find. */
#ifndef MUTANT_H
#define MUTANT_H

#include <errno.h>
#include <string.h>

#include "proof/check.h"
#include "unit.h"

/* One round of one rank, to be spoilt; returns the new number of steps. */
struct round {
    const struct ibshift_plan *plan;
    uint32_t rank;
    uint32_t round;
    uint32_t rounds;
    struct ibshift_step *steps;
    uint32_t count;
};

typedef uint32_t (*spoil_fn)(struct round *round);

struct mutant {
    const char *name;
    enum ibshift_collective collective;
    const char *base;
    uint32_t ranks;
    uint32_t radix;
    uint32_t root;
    bool commutative;
    spoil_fn spoil;
    const char *why; /* a part of what the checker must say */
};

static const struct ibshift_alg *base;
static spoil_fn spoil_now;
static uint32_t rounds_cut;

static uint32_t mutant_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return base->rounds(plan, rank) - rounds_cut;
}

static uint32_t mutant_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                            struct ibshift_step *out)
{
    uint32_t count = base->emit(plan, rank, round, out);
    struct round all = {plan, rank, round, base->rounds(plan, rank), out, count};

    return spoil_now(&all);
}

/* The i-th step of that kind in the round, or a step that nobody looks at. */
static inline struct ibshift_step *nth(struct round *r, uint8_t kind, uint32_t i)
{
    static struct ibshift_step none;

    for (uint32_t s = 0; s < r->count; s++) {
        if (r->steps[s].kind == kind && i-- == 0) {
            return &r->steps[s];
        }
    }
    none = (struct ibshift_step){0};
    return &none;
}

static inline struct ibshift_step *send_of(struct round *r)
{
    return nth(r, IBSHIFT_STEP_SEND, 0);
}

static inline struct ibshift_step *recv_of(struct round *r)
{
    return nth(r, IBSHIFT_STEP_RECV, 0);
}

static inline bool is_at(const struct round *r, uint32_t rank, uint32_t round)
{
    return r->rank == rank && r->round == round;
}

static inline uint32_t drop(struct round *r, const struct ibshift_step *step)
{
    size_t index = (size_t)(step - r->steps);

    memmove(&r->steps[index], &r->steps[index + 1], (r->count - index - 1) * sizeof(*step));
    return r->count - 1;
}

static inline uint32_t nothing(struct round *r)
{
    return r->count;
}

static int judge(const struct mutant *mutant, const struct ibshift_alg *alg,
                 struct ibshift_check_result *result)
{
    struct ibshift_plan plan = {.ranks = mutant->ranks,
                                .root = mutant->root,
                                .radix = mutant->radix,
                                .segments = 3,
                                .commutative = mutant->commutative};
    struct ibshift_check check = {.window = 1};

    return ibshift_check_plan(alg, &plan, &check, result);
}

/* Fails unless each is refused, for the reason that it names. */
static inline void expect_all_caught(const struct mutant *mutants, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct mutant *mutant = &mutants[i];
        struct ibshift_check_result result;
        struct ibshift_alg alg;

        base = ibshift_alg_find(mutant->collective, mutant->base);
        assert_non_null(base);
        assert_int_equal(judge(mutant, base, &result), 0);
        alg = *base;
        alg.rounds = mutant_rounds;
        alg.emit = mutant_emit;
        rounds_cut = mutant->spoil == NULL;
        spoil_now = mutant->spoil != NULL ? mutant->spoil : nothing;
        assert_int_equal(judge(mutant, &alg, &result), -EBADMSG);
        if (strstr(result.why, mutant->why) == NULL) {
            fail_msg("%s: says '%s', not '%s'", mutant->name, result.why, mutant->why);
        }
    }
}

#endif
