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

/* The ways to all leaves: see route_tree_ways(). */
struct route_ways {
    uint32_t *leaves; /* switches with hosts */
    uint32_t *number; /* [switch]: its number among them */
    uint32_t leaf_count;
    uint8_t *descent, *way; /* [leaf number * switches + switch] */
};

/* Tables and order; is_crossed: the engine wants cross-connected levels, or else none. */
int route_closed_engine(struct route *r, bool is_crossed, struct ibshift_error *err);

/* down[] from up[]: the same labels and cables. */
void route_aim_down(const struct route_tree *t, struct route_aim *aim);

/* Nothing is missing: every row as the formulas have it. -ENOMEM. */
int route_whole(const struct route_closed *c, struct ibshift_error *err);

/*
 * Where cables or switches are missing (section V of the paper): moves the destinations whose way
 * down is gone to other parents, for all sources alike, and fills every row with the formula's port
 * where it leads on, with the least used one that does where it does not.
 */
int route_damaged(struct route_closed *c, struct ibshift_error *err);

/* Moves routes off links where the flows of one shift meet; hosts are shifted over their places.
 * *cost: the sum over all stages and LIDs of a host of the busiest link's flows. -ENOMEM. */
int route_polish(const struct route_closed *c, const struct route_ways *w, const uint32_t *place_of,
                 uint32_t places, uint64_t *cost);

/*
 * The same for the order that comes out cheapest: with all place keepers, without those of leaves
 * that are not there, without any. Fabrics with more than 150 million pairs of link and shift are
 * left as they are.
 */
int route_polish_orders(struct route_closed *c, const struct route_ways *w,
                        struct ibshift_error *err);

#endif
