/*
 * The order of hosts that the tables were made for: shifts over it meet the fewest flows on a link.
 *
 * Found in the tables, not assumed: in a tree, the switch where a route turns from up to down tells
 * a destination's place. Parts of the tree that hang on the same switches follow each other, and
 * within each part hosts come in the order in which the part before used the turning switches
 * (least recently used first); under d-mod-k this gives back the order that the closed form counts
 * in, whatever the names, GUIDs and LIDs. Without tables, or where no tree is recognised, hosts
 * follow the switches.
 */
#ifndef IBSHIFT_FABRIC_SHAPE_ORDER_H
#define IBSHIFT_FABRIC_SHAPE_ORDER_H

#include "fabric/shape/shape.h"

/* *order: all hosts, the caller's to free. 0 or -ENOMEM. */
int ibshift_order_routing(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                          uint32_t **order, struct ibshift_error *err);

/*
 * The same with place keepers (IBSHIFT_NO_HOST) for hosts that the fullest part of a tree has and
 * another has not, so that every host keeps its place in the whole tree's shift. *count may exceed
 * the number of hosts.
 */
int ibshift_order_keepers(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                          uint32_t **kept, uint32_t *count, struct ibshift_error *err);

#endif
