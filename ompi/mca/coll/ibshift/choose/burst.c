#include "choose/burst.h"

/* Overheads have fallen to their minimum long before. */
#define BURST_LIMIT (1u << 20)

static bool is_alike(const struct ibshift_step *step, const struct ibshift_step *first)
{
    return step->tag == first->tag || step->count == first->count;
}

/* A step of the round that is no receive waits for a receive of round `first` or later. */
static bool has_user(const struct ibshift_step *steps, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].kind != IBSHIFT_STEP_RECV && steps[i].need > first) {
            return true;
        }
    }
    return false;
}

/* A send that needs more than the first did had to wait for something in between. */
static bool belongs(const struct ibshift_step *step, const struct ibshift_step *first)
{
    return is_alike(step, first) && (step->kind != IBSHIFT_STEP_SEND || step->need <= first->need);
}

uint32_t ibshift_burst_length(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                              int kind, uint32_t rank, uint32_t round, uint32_t index)
{
    uint32_t rounds = alg->rounds(plan, rank), first_round = round, length = 0;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS], first;

    for (; round < rounds && length < BURST_LIMIT; round++, index = 0) {
        uint32_t count = (uint32_t)alg->emit(plan, rank, round, steps);

        if (length == 0) {
            first = steps[index];
        } else if (kind == IBSHIFT_STEP_RECV && has_user(steps, count, first_round)) {
            return length;
        }
        for (; index < count; index++) {
            if (steps[index].kind == kind && !belongs(&steps[index], &first)) {
                return length;
            }
            length += steps[index].kind == kind;
        }
    }
    return length;
}
