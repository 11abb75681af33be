#include "choose/burst.h"

/* Overheads have fallen to their minimum long before. */
#define BURST_LIMIT (1u << 20)

static bool is_alike(const struct ibshift_step *step, const struct ibshift_step *first)
{
    return step->tag == first->tag || step->count == first->count;
}

uint32_t ibshift_burst_sends(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                             uint32_t rank, uint32_t round, uint32_t index)
{
    uint32_t rounds = alg->rounds(plan, rank), length = 0;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS], first;

    for (; round < rounds && length < BURST_LIMIT; round++, index = 0) {
        uint32_t count = (uint32_t)alg->emit(plan, rank, round, steps);

        if (length == 0) {
            first = steps[index];
        }
        for (; index < count; index++) {
            const struct ibshift_step *step = &steps[index];

            if (step->kind == IBSHIFT_STEP_SEND &&
                (step->need > first.need || !is_alike(step, &first))) {
                return length;
            }
            length += step->kind == IBSHIFT_STEP_SEND;
        }
    }
    return length;
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

uint32_t ibshift_burst_recvs(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                             uint32_t rank, uint32_t round, uint32_t index)
{
    uint32_t rounds = alg->rounds(plan, rank), first_round = round, length = 0;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS], first;

    for (; round < rounds && length < BURST_LIMIT; round++, index = 0) {
        uint32_t count = (uint32_t)alg->emit(plan, rank, round, steps);

        if (length == 0) {
            first = steps[index];
        } else if (has_user(steps, count, first_round)) {
            return length;
        }
        for (; index < count; index++) {
            const struct ibshift_step *step = &steps[index];

            if (step->kind == IBSHIFT_STEP_RECV && !is_alike(step, &first)) {
                return length;
            }
            length += step->kind == IBSHIFT_STEP_RECV;
        }
    }
    return length;
}
