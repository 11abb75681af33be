/*
 * Routing by allowed turns: which pairs of channels a packet may take one after the other says an
 * engine; tables that keep to it are found here, for any fabric.
 *
 * A table knows the destination only, not where a packet came from. So for a destination the ways
 * of all switches form a tree towards it, and every turn of that tree must be allowed: then there
 * is no second way that the packet would have to be told of by another LID (destination renaming).
 * The price is that a switch may have to take, or may not be taken by, a longer way than turns
 * alone would ask for.
 */
#ifndef IBSHIFT_ROUTE_TURNS_H
#define IBSHIFT_ROUTE_TURNS_H

#include "route/net.h"

struct route_turns {
    const struct route_net *net;
    uint64_t *from;   /* [arc]: place of its bits */
    uint8_t *allowed; /* [from[arc] + next arc - first arc of the switch between] */
    uint32_t *label;  /* [switch]: place in the spanning tree, 0 the root */
    uint32_t *parent; /* [switch]: its arc towards the root, UINT32_MAX of the root */
};

/* All turns forbidden; the spanning tree found. -ENOMEM. */
int route_turns_open(const struct route_net *net, struct route_turns *turns,
                     struct ibshift_error *err);
void route_turns_close(struct route_turns *turns);

static inline uint8_t *route_turn(const struct route_turns *t, uint32_t arc, uint32_t next)
{
    return &t->allowed[t->from[arc] + next - t->net->first[t->net->arcs[arc].to]];
}

/* Towards the root. */
static inline bool route_goes_up(const struct route_turns *t, uint32_t arc)
{
    return t->label[t->net->arcs[arc].to] < t->label[t->net->arcs[arc].from];
}

/*
 * The spanning tree, depth first (section 3 of J. C. Sancho et al., "Routing in InfiniBand torus
 * network topologies"): its root is the switch farthest from the others on average, the next is
 * the one with most cables to switches of the tree, then the farthest, then the first.
 */
int route_turns_span(struct route_turns *turns, struct ibshift_error *err);

/* The ways of all switches to a destination switch. */
struct route_ways {
    uint32_t *next;   /* [switch]: arc, UINT32_MAX at the destination */
    uint32_t *length; /* [switch]: UINT32_MAX: none yet */
};

/* Of tables: cables of all routes together, and the squares of what the cables carry. */
struct route_score {
    uint64_t links, squares;
};

/*
 * The tables: short ways first, then the load shared out. All allowed turns without a cycle, the
 * tables have none. -ENOMEM; -ENOTSUP when the turns leave a pair without a way.
 */
int route_turns_fill(struct route *r, const struct route_turns *turns, struct route_score *score,
                     struct ibshift_error *err);

/* Ways to one switch: as short as they are found; false: a switch has none. */
struct route_search;
struct route_search *route_search_new(const struct route_turns *turns);
void route_search_free(struct route_search *s);
bool route_search(struct route_search *s, uint32_t target, struct route_ways *ways);

#endif
