/*
 * The switches of a fabric and the channels between them, for engines that know no levels: a
 * channel is a directed cable, numbered by the switch that it leaves. Targets are what has a LID.
 */
#ifndef IBSHIFT_ROUTE_NET_H
#define IBSHIFT_ROUTE_NET_H

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
    const struct ibshift_fabric *f;
    uint32_t switches, arc_count, target_count;
    uint32_t *first; /* [switches + 1]: its arcs */
    struct route_arc *arcs;
    struct route_target *targets; /* all LIDs of hosts, and those of switches without hosts */
    uint32_t *hosts;              /* [switches] */
};

/* -ENOTSUP: switches that no cables join, or a host that is not on a switch; err names them. */
int route_net_open(const struct ibshift_fabric *f, struct route_net *net,
                   struct ibshift_error *err);
void route_net_close(struct route_net *net);

/* Cables from source to each switch, UINT32_MAX where there is no way; queue has room for all. */
void route_net_distances(const struct route_net *net, uint32_t source, uint32_t *distance,
                         uint32_t *queue);

static inline const char *route_net_name(const struct route_net *net, uint32_t sw)
{
    return ibshift_node_name(net->f, net->f->switches[sw]);
}

#endif
