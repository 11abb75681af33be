/* A group's way from a call to its plan. */
#ifndef IBSHIFT_GROUP_DECIDE_H
#define IBSHIFT_GROUP_DECIDE_H

#include "exec/op.h"
#include "group/group.h"

/*
 * Algorithm, plan, window, pieces and pace, by choose/choose.h. 0, -ENOTSUP on all
 * ranks alike, or -ENOMEM. Before it, of a call that has no plan yet: ibshift_group_order_find().
 */
int ibshift_group_choose(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                         uint32_t root, struct ibshift_op_params *params);

/* Once, before the first neighborhood collective; 0 or as ibshift_neighborhood_make(). */
int ibshift_group_set_neighbors(struct ibshift_group *group,
                                const struct ibshift_neighbor_lists *lists);

/* What was found is forgotten; the shell's stays. */
void ibshift_group_free(struct ibshift_group *group);

#endif
