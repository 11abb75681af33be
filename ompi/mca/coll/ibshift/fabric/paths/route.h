/* Walking the routes that the tables give. */
#ifndef IBSHIFT_FABRIC_PATHS_ROUTE_H
#define IBSHIFT_FABRIC_PATHS_ROUTE_H

#include "fabric/graph/fabric.h"

#define IBSHIFT_ROUTE_MAX 1024 /* links of the longest route that is followed */

/*
 * Directed links (indices of sending ports) from a host to a destination LID, the host's own first.
 * Returns their number (0: the LID is the host's own), or -EHOSTUNREACH: a switch has no entry, or
 * its port has no cable; -ELOOP; -ENOENT: nobody has the LID; -ESTALE: the route ends at an HCA
 * that has another LID; -ENOBUFS: longer than room. On failure links[] holds the walk as far as it
 * came and *walked its length.
 */
int ibshift_route_walk(const struct ibshift_fabric *f, uint32_t host, unsigned lid, uint32_t *links,
                       int room, int *walked);

/* One line that says what stopped the walk: switch, port, LID. */
void ibshift_route_explain(const struct ibshift_fabric *f, uint32_t host, unsigned lid, int code,
                           const uint32_t *links, int walked, struct ibshift_error *err);

#endif
