#include "route/route.h"

#include <errno.h>
#include <stdlib.h>

struct first_hosts {
    struct ibshift_fabric *f;
    uint8_t *sl;      /* the route's, or NULL */
    uint32_t *host;   /* [switch]: + 1, 0 = none */
    uint32_t *hosts;  /* [switch]: how many */
    uint32_t *others; /* [switch]: LIDs of its routers and aggregation nodes that have their ways */
};

static int copy_columns(void *context, uint32_t first, uint32_t end)
{
    const struct first_hosts *c = context;
    struct ibshift_fabric *f = c->f;

    for (uint32_t s = first; s < end; s++) {
        uint8_t *row = f->lft + (size_t)s * f->lft_stride;

        for (uint32_t target = 0; target < f->switch_count; target++) {
            unsigned lid = f->nodes[f->switches[target]].lid;

            if (c->host[target] != 0 && target != s && lid != 0 && row[lid] == 0) {
                unsigned like = ibshift_host_lid(f, c->host[target] - 1);

                row[lid] = row[like];
                if (c->sl != NULL) {
                    c->sl[(size_t)s * f->lft_stride + lid] =
                        c->sl[(size_t)s * f->lft_stride + like];
                }
            }
        }
    }
    return 0;
}

static bool is_empty(const struct ibshift_fabric *f, uint32_t s)
{
    const uint8_t *row = f->lft + (size_t)s * f->lft_stride;

    for (uint32_t lid = 0; lid < f->lft_stride; lid++) {
        if (row[lid] != 0) {
            return false;
        }
    }
    return true;
}

/* Such a switch passes nothing on, so that no dependency between links comes of it. */
static void hang_on(struct ibshift_fabric *f, uint8_t *sl, uint32_t s, unsigned port)
{
    uint32_t peer = f->ports[ibshift_node_port(f, f->switches[s], port)].peer;
    uint32_t other = f->nodes[f->ports[peer].node].switch_index;
    unsigned lid = f->nodes[f->switches[s]].lid, its = f->nodes[f->ports[peer].node].lid;

    for (uint32_t i = 1; i < f->lft_stride; i++) {
        if (i != lid && (i == its || ibshift_lft_get(f, other, i) != 0)) {
            ibshift_lft_set(f, s, i, port);
        }
    }
    for (uint32_t i = 0; lid != 0 && its != 0 && i < f->switch_count; i++) {
        if (i != s && i != other) {
            ibshift_lft_set(f, i, lid, ibshift_lft_get(f, i, its));
        }
        if (sl != NULL) {
            sl[(size_t)i * f->lft_stride + lid] = sl[(size_t)i * f->lft_stride + its];
        }
    }
    ibshift_lft_set(f, other, lid, f->ports[peer].number);
}

static void hang_on_neighbours(struct ibshift_fabric *f, uint8_t *sl)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        const struct ibshift_node *node = &f->nodes[f->switches[s]];

        for (unsigned p = 1; is_empty(f, s) && p <= node->port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, node->first_port + p - 1);

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) &&
                !is_empty(f, f->nodes[next].switch_index)) {
                hang_on(f, sl, s, p);
            }
        }
    }
}

/* A LID that leads to the switch: its nth host's, by turns, or its own where it has no hosts. */
static unsigned lid_behind(const struct ibshift_fabric *f, uint32_t node, uint32_t nth,
                           uint32_t hosts)
{
    const struct ibshift_node *sw = &f->nodes[node];

    for (uint32_t p = sw->first_port; hosts > 0 && p < sw->first_port + sw->port_count; p++) {
        uint32_t peer = f->ports[p].peer;

        if (peer != IBSHIFT_NO_PORT && f->nodes[f->ports[peer].node].kind == IBSHIFT_NODE_HCA &&
            nth-- == 0) {
            return f->ports[peer].lid;
        }
    }
    return sw->lid;
}

/* All ways to one LID as those to another behind the same switch; there out of this port. */
static void copy_ways(struct ibshift_fabric *f, uint8_t *sl, unsigned lid, unsigned like)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        size_t row = (size_t)s * f->lft_stride;

        f->lft[row + lid] = f->lft[row + like];
        if (sl != NULL) {
            sl[row + lid] = sl[row + like];
        }
    }
}

/* Routers and aggregation nodes are no part of the order: they are reached as the hosts of their
 * switch are, so that their routes add no dependency that the hosts' have not. */
static void route_to_others(struct first_hosts *c)
{
    struct ibshift_fabric *f = c->f;

    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];
        uint32_t node = ibshift_port_neighbour(f, p), sw;

        if (f->nodes[port->node].kind != IBSHIFT_NODE_OTHER || port->lid == 0 ||
            node == IBSHIFT_NO_NODE || !ibshift_node_is_switch(f, node)) {
            continue;
        }
        sw = f->nodes[node].switch_index;
        for (unsigned i = 0; i < 1u << port->lmc; i++) {
            uint32_t nth = c->hosts[sw] > 0 ? c->others[sw]++ % c->hosts[sw] : 0;

            copy_ways(f, c->sl, port->lid + i, lid_behind(f, node, nth, c->hosts[sw]));
            ibshift_lft_set(f, sw, port->lid + i, f->ports[port->peer].number);
        }
    }
}

static void count_hosts(struct first_hosts *c)
{
    const struct ibshift_fabric *f = c->f;

    for (uint32_t h = f->host_count; h-- > 0;) {
        uint32_t node = ibshift_port_neighbour(f, f->hosts[h]);

        if (ibshift_node_is_switch(f, node)) {
            c->host[f->nodes[node].switch_index] = h + 1;
            c->hosts[f->nodes[node].switch_index]++;
        }
    }
}

int route_to_switches(struct route *r, struct ibshift_error *err)
{
    struct ibshift_fabric *f = r->fabric;
    size_t switches = (size_t)f->switch_count + 1;
    struct first_hosts c = {.f = f, .sl = r->sl, .host = calloc(3 * switches, sizeof(*c.host))};

    if (c.host == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u switches", f->switch_count);
    }
    c.hosts = c.host + switches;
    c.others = c.hosts + switches;
    count_hosts(&c);
    route_parallel(r->threads, f->switch_count, copy_columns, &c);
    hang_on_neighbours(f, r->sl);
    route_to_others(&c);
    free(c.host);
    return 0;
}
