#include "fabric/paths/contend_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct visitor {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;
    const uint32_t *member_of;
    uint32_t stages; /* highest tag + 1 */
    size_t count;
    size_t *at; /* stage -> next free place; NULL: only count */
    struct ibshift_flow *flows;
};

static int visit_send(struct visitor *v, uint32_t rank, const struct ibshift_step *step)
{
    if (v->at == NULL) {
        v->stages = step->tag >= v->stages ? step->tag + 1 : v->stages;
        return ++v->count > IBSHIFT_PLAN_FLOWS || v->stages > IBSHIFT_PLAN_FLOWS ? -E2BIG : 0;
    }
    if (v->flows != NULL) {
        v->flows[v->at[step->tag]] =
            (struct ibshift_flow){v->member_of[rank], v->member_of[step->peer], 0};
    }
    v->at[step->tag]++;
    return 0;
}

static int visit_sends(struct visitor *v)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    for (uint32_t rank = 0; rank < v->plan->ranks; rank++) {
        uint32_t rounds = v->alg->rounds(v->plan, rank);

        for (uint32_t round = 0; round < rounds; round++) {
            uint32_t count = v->alg->emit(v->plan, rank, round, steps);

            for (uint32_t i = 0; i < count; i++) {
                int status =
                    steps[i].kind == IBSHIFT_STEP_SEND ? visit_send(v, rank, &steps[i]) : 0;

                if (status != 0) {
                    return status;
                }
            }
        }
    }
    return 0;
}

static uint32_t listed_flows(const struct ibshift_stage_source *source, uint32_t stage,
                             struct ibshift_flow *flows)
{
    size_t count = source->start[stage + 1] - source->start[stage];

    memcpy(flows, source->listed + source->start[stage], count * sizeof(*flows));
    return (uint32_t)count;
}

/* at[] holds the number of sends of each stage; it becomes their places. Returns the most. */
static uint32_t set_places(const struct visitor *v, size_t *start)
{
    size_t most = 0;

    start[0] = 0;
    for (uint32_t s = 0; s < v->stages; s++) {
        most = v->at[s] > most ? v->at[s] : most;
        start[s + 1] = start[s] + v->at[s];
        v->at[s] = start[s];
    }
    return (uint32_t)most;
}

int ibshift_plan_flows_open(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            const uint32_t *member_of, struct ibshift_plan_flows *result)
{
    struct visitor v = {.alg = alg, .plan = plan, .member_of = member_of};
    int status = visit_sends(&v);

    if (status != 0) {
        return status;
    }
    *result = (struct ibshift_plan_flows){.flows = malloc((v.count + 1) * sizeof(*result->flows)),
                                          .start = calloc((size_t)v.stages + 1, sizeof(size_t))};
    v.at = calloc((size_t)v.stages + 1, sizeof(*v.at));
    if (result->flows == NULL || result->start == NULL || v.at == NULL) {
        ibshift_plan_flows_close(result);
        free(v.at);
        return -ENOMEM;
    }
    visit_sends(&v);
    result->source = (struct ibshift_stage_source){.stages = v.stages,
                                                   .most = set_places(&v, result->start),
                                                   .flows = listed_flows,
                                                   .listed = result->flows,
                                                   .start = result->start,
                                                   .member_of = member_of,
                                                   .ranks = plan->ranks};
    v.flows = result->flows;
    visit_sends(&v);
    free(v.at);
    return 0;
}

void ibshift_plan_flows_close(struct ibshift_plan_flows *flows)
{
    free(flows->flows);
    free(flows->start);
    *flows = (struct ibshift_plan_flows){0};
}
