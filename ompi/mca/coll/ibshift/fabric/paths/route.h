/* Walking the routes that the tables give: one, and all of the fabric. */
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

/* What the tables do with every destination, from every switch that has hosts. */
struct ibshift_table_check {
    uint64_t routes;                /* (switch with hosts, LID of a host) */
    uint64_t lost, circles, strays; /* no entry or cable; loops; arrived at another host */
    uint64_t turns;                 /* go up again after going down: may deadlock */
    unsigned longest;               /* links of the longest, both hosts' own included */
    struct ibshift_warnings problems;
};

/* level[node], as of a shape; NULL: turns are not counted. 0, -ENODATA: no tables, -ENOMEM. */
int ibshift_fabric_check(const struct ibshift_fabric *f, const uint8_t *level,
                         struct ibshift_table_check *check, struct ibshift_error *err);

/*
 * What an all-to-all of all hosts puts on the busiest link of a fabric, whatever the order and the choice of LIDs. Times are those
 * of the links over that of the slowest of the hosts' own cables, the unit in which ibshift_arrange() says how much of the hosts'
 * rate the routing leaves: above 1 the routing is the limit. Pairs whose route does not arrive are left out. 0, -ENODATA: no
 * tables, -ENOMEM.
 */
int ibshift_load_find(const struct ibshift_fabric *f, double *least, uint32_t *link,
                      struct ibshift_error *err);

#endif
