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

/* ---- what order.c and keepers.c share ---- */

/* The order without keepers, by the tables or by the switches alone. */
int ibshift_order_hosts(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                        bool by_tables, uint32_t **order, struct ibshift_error *err);
/* Component of level l that the host hangs on; level 0: its switch. */
uint32_t ibshift_order_component(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                                 uint32_t host, unsigned l);
/* The highest switch of a route, and the link it sends into; without levels, the second switch.
 * IBSHIFT_NO_SWITCH without tables. */
uint32_t ibshift_order_turn(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                            uint32_t from, uint32_t to, uint32_t *out);

#endif
