/* The closed form that the engines pgft and qft share. */
#ifndef IBSHIFT_ROUTE_CLOSED_H
#define IBSHIFT_ROUTE_CLOSED_H

#include "route/tree.h"

/* What the formulas say of one LID, one element a level. */
struct route_aim {
    uint32_t leaf;                         /* switch; IBSHIFT_NO_SWITCH: the LID is no host's */
    uint16_t up[IBSHIFT_LEVELS_MAX + 1];   /* [level]: index into the tree's up ports */
    uint16_t down[IBSHIFT_LEVELS_MAX + 1]; /* and into its down ports; [1]: host_port */
    uint8_t host_port;
};

struct route_closed {
    struct route *r;
    const struct route_tree *t;
    struct route_aim *aims; /* by LID */
};

/* The aims' ways up, and the places of the hosts, so that the jobs of route.job_of share cables evenly. */
void route_deal_ways(struct route_closed *c, struct route_tree *t);

/* The ways to all leaves: see route_tree_ways(). */
struct route_leaf_ways {
    uint32_t *leaves; /* switches with hosts */
    uint32_t *number; /* [switch]: its number among them */
    uint32_t leaf_count;
    uint8_t *descent, *way; /* [leaf number * switches + switch] */
};

/*
 * The same for the order that comes out cheapest: with all place keepers, without those of leaves
 * that are not there, without any. Fabrics with more than 150 million pairs of link and shift are
 * left as they are.
 */
void route_polish_orders(struct route_closed *c, const struct route_leaf_ways *w);

#endif
