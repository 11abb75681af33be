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
    if (ibshift_collective_is_of_neighbors(wanted->collective)) {
        params->plan.neighbors = &group->neighbors;
    }
    params->plan.commutative = wanted->commutes;
    params->is_attended = wanted->is_blocking;
    return ibshift_choose_call(group, wanted, params);
}

int ibshift_group_set_neighbors(struct ibshift_group *group,
                                const struct ibshift_neighbor_lists *lists)
{
    const struct ibshift_wanted any = {.collective = IBSHIFT_NEIGHBOR_ALLTOALL};
    const struct ibshift_order *located = &group->order.located;
    int rc = ibshift_group_order_find(group, &any, NULL);

    group->neighbors = (struct ibshift_neighbors){group->rank, 1, &group->neighborhood};
    return rc != 0 ? rc
                   : ibshift_neighborhood_make(lists, group->rank, group->size,
                                               located->places == 0 ? NULL : located,
                                               &group->neighborhood);
}

void ibshift_group_free(struct ibshift_group *group)
{
    ibshift_group_order_free(&group->order);
    ibshift_neighborhood_free(&group->neighborhood);
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        ibshift_choices_forget(&group->choices, (enum ibshift_collective)i);
    }
    ibshift_crowd_free(&group->choices.crowd);
    ibshift_nodes_free(&group->choices.nodes);
    for (int i = 0; i < IBSHIFT_PACED_FORMS * IBSHIFT_SIZE_CLASSES; i++) {
        free(group->pacing.by_class[i / IBSHIFT_SIZE_CLASSES][i % IBSHIFT_SIZE_CLASSES]);
    }
}
