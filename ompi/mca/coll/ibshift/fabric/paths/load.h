/* What an all-to-all of all hosts puts on the links of a fabric. */
#ifndef IBSHIFT_FABRIC_PATHS_LOAD_H
#define IBSHIFT_FABRIC_PATHS_LOAD_H

#include "fabric/graph/fabric.h"

/*
 * Times are those of the links over that of the slowest of the hosts' own cables, the unit in which
 * ibshift_arrange() says how much of the hosts' rate the routing leaves: above 1 the routing is the
 * limit.
 */
struct ibshift_load {
    double *on;    /* [directed link], every pair of hosts once, to base LIDs */
    double least;  /* no order and no choice of LIDs gets below it */
    uint32_t link; /* the link that sets it */
};

/* Pairs whose route does not arrive are left out. 0, -ENODATA: no tables, -ENOMEM. */
int ibshift_load_find(const struct ibshift_fabric *f, struct ibshift_load *load,
                      struct ibshift_error *err);
void ibshift_load_free(struct ibshift_load *load);

#endif
