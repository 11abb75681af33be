/* What the tables do with every destination, from every switch that has hosts. */
#ifndef IBSHIFT_FABRIC_SHAPE_CHECK_H
#define IBSHIFT_FABRIC_SHAPE_CHECK_H

#include "fabric/shape/shape.h"

#define IBSHIFT_CHECK_TOLD 8

struct ibshift_table_check {
    uint64_t routes;                /* (switch with hosts, LID of a host) */
    uint64_t lost, circles, strays; /* no entry or cable; loops; arrived at another host */
    uint64_t turns;                 /* go up again after going down: may deadlock */
    unsigned longest;               /* links of the longest, both hosts' own included */
    unsigned told;
    char problem[IBSHIFT_CHECK_TOLD][256];
};

/* shape may be NULL: turns are not counted then. 0, -ENODATA: no tables, -ENOMEM. */
int ibshift_fabric_check(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                         struct ibshift_table_check *check, struct ibshift_error *err);

#endif
