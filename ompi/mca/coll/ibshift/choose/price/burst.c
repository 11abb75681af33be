#include "choose/price/burst.h"

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

/* Of the burst that begins there; at least 1. */
static uint32_t length_from(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            const struct ibshift_burst_place *place)
{
    uint32_t rounds = alg->rounds(plan, place->rank), round = place->round, index = place->index;
    uint32_t length = 0;
    int kind = place->kind;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS], first;

    for (; round < rounds && length < BURST_LIMIT; round++, index = 0) {
        uint32_t count = (uint32_t)alg->emit(plan, place->rank, round, steps);

        if (length == 0) {
            first = steps[index];
        } else if (kind == IBSHIFT_STEP_RECV && has_user(steps, count, place->round)) {
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

double ibshift_burst_overhead(struct ibshift_burst *burst, const struct ibshift_model *model,
                              const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                              const struct ibshift_burst_place *place)
{
    bool is_send = place->kind == IBSHIFT_STEP_SEND;
    double max = is_send ? model->send_max : model->recv_max;
    double min = is_send ? model->send_min : model->recv_min;

    if (max == min) {
        return max;
    }
    if (burst->left == 0) {
        burst->length = length_from(alg, plan, place);
        burst->left = burst->length;
    }
    burst->left--;
    return min + (max - min) / burst->length;
}
