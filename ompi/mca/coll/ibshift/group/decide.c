#include "group/decide.h"

#include <stdlib.h>

#include "group/choose.h"
#include "group/order.h"

int ibshift_group_choose(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                         uint32_t root, struct ibshift_op_params *params)
{
    params->plan =
        (struct ibshift_plan){.ranks = group->size, .root = root, .nodes = &group->choices.nodes};
    if (wanted->collective == IBSHIFT_ALLTOALL) {
        params->plan.order = group->order.order;
        params->plan.stages = group->order.stages;
    }
    params->plan.commutative = wanted->commutes;
    params->is_attended = wanted->is_blocking;
    return ibshift_choose_call(group, wanted, params);
}

void ibshift_group_free(struct ibshift_group *group)
{
    ibshift_group_order_free(&group->order);
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        ibshift_choices_forget(&group->choices, (enum ibshift_collective)i);
    }
    ibshift_crowd_free(&group->choices.crowd);
    ibshift_nodes_free(&group->choices.nodes);
    for (int i = 0; i < IBSHIFT_PACED_FORMS * IBSHIFT_SIZE_CLASSES; i++) {
        free(group->pacing.by_class[i / IBSHIFT_SIZE_CLASSES][i % IBSHIFT_SIZE_CLASSES]);
    }
}
