/*
 * A ring through the hosts of a job: all of a leaf one after the other, so that one message leaves each leaf and one comes in. Which
 * leaf comes next, and at which of its hosts, is searched until no link of the routes carries two messages at once, as on damaged
 * trees it would. Deterministic.
 */
#ifndef IBSHIFT_BOUND_RING_H
#define IBSHIFT_BOUND_RING_H

#include "fabric/paths/paths.h"
#include "pool.h"

/* along: the members in an order to begin with, then in that of the ring. */
void fabric_ring_find(const struct ibshift_paths *paths, uint32_t *along, struct pool *pool);

#endif
