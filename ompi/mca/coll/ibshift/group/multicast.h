/*
 * A multicast group for the ranks of a group: rank 0 has the subnet administrator make it, all join, and either all use it or
 * none does.
 */
#ifndef IBSHIFT_GROUP_MULTICAST_H
#define IBSHIFT_GROUP_MULTICAST_H

#include "group/group.h"

/*
 * Of a call that has no plan yet, before it: what all ranks find together, an order (group/order.h), and in the first
 * blocking broadcast a multicast group, where the user wants any. 0, or a negative errno of what the ranks
 * tell one another by.
 */
int ibshift_group_find(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                       const struct ibshift_together *together);

/* Whether that comes first: until then such a call has no choice either. */
bool ibshift_group_cast_is_due(const struct ibshift_group *group,
                               const struct ibshift_wanted *wanted);
void ibshift_group_cast_free(struct ibshift_group *group);

#endif
