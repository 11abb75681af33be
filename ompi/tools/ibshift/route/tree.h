/*
 * A fat tree as the engines see it: every switch has a level, and its cables stand in tables by
 * the digits of whom they lead to, so that a formula's port number becomes a port.
 *
 * The parameters are those of E. Zahavi et al., "Quasi fat trees for HPC clouds and their
 * fault-resilient closed-form routing", seen from the graph: where its p cross-connects levels,
 * `shared` switches have the same digits and are told apart by a label; where its p lays cables
 * side by side, it is `cables`. docs/routing.md has the correspondence.
 */
#ifndef IBSHIFT_ROUTE_TREE_H
#define IBSHIFT_ROUTE_TREE_H

#include "fabric/shape/shape.h"
#include "route/route.h"

#define ROUTE_NO_PLACE UINT32_MAX

/* One end of a cable between switches of neighbouring levels. */
struct route_cable {
    uint32_t other; /* switch */
    uint8_t port;   /* here */
};

struct route_tree {
    struct pool pool;
    const struct ibshift_fabric *f; /* the engine's graph, or the pruned copy of it */
    struct ibshift_fabric *pruned;
    struct ibshift_shape shape;
    unsigned h; /* the level that joins all hosts; higher switches are of no use */

    /* By level, of a complete tree. Children of level l are components of levels below l. */
    unsigned children[IBSHIFT_LEVELS_MAX + 2]; /* [1]: hosts of the fullest leaf */
    unsigned parents[IBSHIFT_LEVELS_MAX + 2];  /* digits of the switches of level l: w */
    unsigned shared[IBSHIFT_LEVELS_MAX + 2];   /* switches of level l with the same digits */
    unsigned cables[IBSHIFT_LEVELS_MAX + 2];   /* from a switch of level l to one of l - 1 */
    unsigned ups[IBSHIFT_LEVELS_MAX + 2];      /* up ports: parents, shared, cables of l + 1 */
    unsigned ways[IBSHIFT_LEVELS_MAX + 2];     /* down ports to one child: shared of l - 1, cables
                                                */

    /* [switch * up_stride + digit + parents * (label + shared * cable)]: port, 0 = no cable */
    uint8_t *up;
    /* [switch * down_stride + child * ways + label * cables + cable] */
    uint8_t *down;
    unsigned up_stride, down_stride;

    /* Cables of switch s: up from [first_up[s]], down from [first_down[s]], to [first_up[s + 1]].
     */
    struct route_cable *cable;
    uint32_t *first_up, *first_down;
    uint32_t *by_level; /* all switches, level after level */

    uint8_t *level;   /* [switch]: 1 .. h; 0: of no use */
    uint8_t *label;   /* [switch]: among those with the same digits */
    uint32_t *twin;   /* [switch]: the next of these, in a circle */
    uint32_t *place;  /* [host]: in the order of the formulas, or ROUTE_NO_PLACE: not on a leaf */
    uint32_t places;  /* product of children */
    uint32_t missing; /* entries of up and down without a cable, hosts left out */
};

/* -ENOTSUP with the node that breaks a rule: no levels, or hosts that no level joins; levels that are
 * cross-connected, or none though the engine wants it. */
int route_tree_find(const struct ibshift_fabric *f, bool is_crossed, struct route_tree *t,
                    struct ibshift_error *err);
void route_tree_free(struct route_tree *t);

static inline unsigned route_tree_digit(const struct route_tree *t, uint32_t sw, unsigned i)
{
    return t->shape.digits[(size_t)sw * (IBSHIFT_LEVELS_MAX + 1) + i];
}

/* The switch that a host hangs on, or IBSHIFT_NO_SWITCH (another host). */
static inline uint32_t route_host_switch(const struct ibshift_fabric *f, uint32_t host)
{
    return ibshift_switch_behind(f, f->hosts[host]);
}

/* The cables of a switch, down or up: those from the first one to *end. */
static inline const struct route_cable *route_tree_cables(const struct route_tree *t, uint32_t s,
                                                          bool is_down,
                                                          const struct route_cable **end)
{
    *end = t->cable + (is_down ? t->first_up[s + 1] : t->first_down[s]);
    return t->cable + (is_down ? t->first_down[s] : t->first_up[s]);
}

#define ROUTE_FAR 255

/*
 * Ways to one switch: descent[s] = links by going down only, way[s] = links of the shortest way up,
 * then down; ROUTE_FAR: none. queue has room for all switches.
 */
void route_tree_ways(const struct route_tree *t, uint32_t target, uint8_t *descent, uint8_t *way,
                     uint32_t *queue);

/* -ENOTSUP, with names: a host cannot go up, then down to the target of route_tree_ways(). */
int route_tree_check_ways(const struct route_tree *t, uint32_t target, const uint8_t *way,
                          struct ibshift_error *err);

/* Entries for hosts' LIDs that are empty: up, then down, over what cables there are. Up to there no
 * entry may lead anywhere else. -ENOTSUP: some hosts cannot reach each other so. */
int route_tree_fill(struct route *r, const struct route_tree *t, struct ibshift_error *err);

/* Entries for the LIDs of all switches: up, then down, over what cables there are. */
void route_tree_switches(struct route *r, const struct route_tree *t);

/* The order of the route: hosts by their places, keepers for places without a host. */
void route_tree_order(const struct route_tree *t, struct route *r);

#endif
