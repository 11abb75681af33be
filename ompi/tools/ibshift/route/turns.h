/*
 * For engines that know no levels: the switches of a fabric and the channels between them. A channel
 * is a directed cable, numbered by the switch that it leaves; targets are what has a LID.
 *
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

#include "route/route.h"

struct route_arc {
    uint32_t from, to; /* switches */
    uint32_t back;     /* the same cable the other way */
    uint8_t port;      /* of from */
};

struct route_target {
    uint32_t sw;
    uint16_t lid;
    uint8_t port;     /* of sw; 0: the switch itself */
    uint32_t brother; /* how many targets of the same switch come before */
};

struct route_net {
    struct pool pool;
    const struct ibshift_fabric *f;
    uint32_t switches, arc_count, target_count;
    uint32_t *first; /* [switches + 1]: its arcs */
    struct route_arc *arcs;
    struct route_target *targets; /* all LIDs of hosts, and those of switches without hosts */
    uint32_t *hosts;              /* [switches] */
};

/* -ENOTSUP: switches that no cables join, or a host that is not on a switch; err names them. In every
 * case pool_free() of its pool ends it. */
int route_net_open(const struct ibshift_fabric *f, struct route_net *net,
                   struct ibshift_error *err);

static inline const char *route_net_name(const struct route_net *net, uint32_t sw)
{
    return ibshift_node_name(net->f, net->f->switches[sw]);
}

struct route_turns {
    struct route_net net;
    uint64_t count;   /* of pairs of channels */
    uint64_t *from;   /* [arc]: place of its bits */
    uint8_t *allowed; /* [from[arc] + next arc - first arc of the switch between] */
    uint32_t *label;  /* [switch]: place in the spanning tree, 0 the root */
    uint32_t *parent; /* [switch]: its arc towards the root, UINT32_MAX of the root */
};

/* The net with all turns forbidden; the spanning tree found. As route_net_open(). */
int route_turns_open(const struct ibshift_fabric *f, struct route_turns *turns,
                     struct ibshift_error *err);

static inline uint8_t *route_turn(const struct route_turns *t, uint32_t arc, uint32_t next)
{
    return &t->allowed[t->from[arc] + next - t->net.first[t->net.arcs[arc].to]];
}

/* Towards the root. */
static inline bool route_goes_up(const struct route_turns *t, uint32_t arc)
{
    return t->label[t->net.arcs[arc].to] < t->label[t->net.arcs[arc].from];
}

/* The ways of all switches to a destination switch. */
struct route_ways {
    uint32_t *next;   /* [switch]: arc, UINT32_MAX at the destination */
    uint32_t *length; /* [switch]: UINT32_MAX: none yet */
};

/*
 * The tables: short ways first, then the load shared out. All allowed turns without a cycle, the
 * tables have none. *squares: the sum of those of what the cables carry. -ENOTSUP when the turns leave
 * a pair without a way.
 */
int route_turns_fill(struct route *r, const struct route_turns *turns, uint64_t *squares,
                     struct ibshift_error *err);

#endif
