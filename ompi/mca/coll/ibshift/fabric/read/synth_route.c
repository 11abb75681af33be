/* Forwarding tables of synthetic fabrics: the closed form where its way exists, else a shortest one. */
#include "fabric/read/synth_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAR UINT16_MAX

/* Ways to the hosts of one leaf switch. Arrays by node. */
struct ways {
    uint16_t *distance; /* hops to the leaf, FAR: none */
    uint16_t *descent;  /* the same by going down only (trees) */
    uint32_t *queue;
    uint32_t *load; /* by port: destinations routed through it (minhop) */
};

static void spread(const struct synth *s, uint32_t start, bool only_up, uint16_t *hops,
                   uint32_t *queue)
{
    const struct ibshift_fabric *f = s->fabric;
    uint32_t head = 0, tail = 0;

    memset(hops, 0xff, f->node_count * sizeof(*hops));
    hops[start] = 0;
    queue[tail++] = start;
    while (head < tail) {
        uint32_t node = queue[head++];

        for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) && hops[next] == FAR &&
                (!only_up ||
                 synth_level(s, s->place[next]) == synth_level(s, s->place[node]) + 1)) {
                hops[next] = (uint16_t)(hops[node] + 1);
                queue[tail++] = next;
            }
        }
    }
}

/* Up, then down: from the top level (the last nodes) to the bottom. */
static void climb(const struct synth *s, struct ways *w)
{
    const struct ibshift_fabric *f = s->fabric;

    memcpy(w->distance, w->descent, f->node_count * sizeof(*w->distance));
    for (uint32_t i = f->switch_count; i-- > 0;) {
        uint32_t node = f->switches[i];
        unsigned level = synth_level(s, s->place[node]);

        for (unsigned p = 1; w->descent[node] == FAR && p <= f->nodes[node].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) &&
                synth_level(s, s->place[next]) == level + 1 && w->distance[next] != FAR &&
                w->distance[next] + 1 < w->distance[node]) {
                w->distance[node] = (uint16_t)(w->distance[next] + 1);
            }
        }
    }
}

static bool is_way(const struct synth *s, const struct ways *w, uint32_t node, unsigned port)
{
    const struct ibshift_fabric *f = s->fabric;
    uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, port));

    if (next == IBSHIFT_NO_NODE || !ibshift_node_is_switch(f, next)) {
        return false;
    }
    if (!s->spec.shape->is_tree) {
        return w->distance[next] + 1 == w->distance[node];
    }
    if (w->descent[node] != FAR) {
        return w->descent[next] != FAR && w->descent[next] + 1 == w->descent[node];
    }
    return w->distance[next] != FAR && w->distance[next] + 1 == w->distance[node] &&
           synth_level(s, s->place[next]) > synth_level(s, s->place[node]);
}

static unsigned least_loaded(const struct synth *s, const struct ways *w, uint32_t node)
{
    const struct ibshift_node *n = &s->fabric->nodes[node];
    unsigned best = 0;

    for (unsigned p = 1; p <= n->port_count; p++) {
        if (is_way(s, w, node, p) &&
            (best == 0 || w->load[n->first_port + p - 1] < w->load[n->first_port + best - 1])) {
            best = p;
        }
    }
    return best;
}

static unsigned closed_form(const struct synth *s, uint32_t node, uint32_t d, unsigned offset)
{
    uint32_t sw = s->place[node];

    return s->spec.shape->port(s, sw, d, (d + offset) % s->hosts);
}

static unsigned choose(const struct synth *s, struct ways *w, uint32_t node, uint32_t d,
                       unsigned offset)
{
    const struct ibshift_node *n = &s->fabric->nodes[node];
    unsigned wanted, port;

    if (w->distance[node] == FAR) {
        return 0;
    }
    if (s->spec.minhop) {
        port = least_loaded(s, w, node);
        w->load[n->first_port + port - 1]++;
        return port;
    }
    wanted = closed_form(s, node, d, offset);
    for (unsigned i = 0; i < n->port_count; i++) {
        port = (wanted - 1 + i) % n->port_count + 1;
        if (is_way(s, w, node, port)) {
            return port;
        }
    }
    return 0;
}

static void route_host(struct synth *s, struct ways *w, uint32_t leaf, unsigned leaf_port,
                       uint32_t host_port)
{
    struct ibshift_fabric *f = s->fabric;
    const struct ibshift_port *host = &f->ports[host_port];

    for (unsigned offset = 0; offset < 1u << host->lmc; offset++) {
        for (uint32_t i = 0; i < f->switch_count; i++) {
            uint32_t node = f->switches[i];
            unsigned port = leaf_port;

            if (node != leaf) {
                port = choose(s, w, node, s->place[host->node], offset);
            }
            ibshift_lft_set(f, i, host->lid + offset, port);
        }
    }
}

static void route_leaf(struct synth *s, struct ways *w, uint32_t leaf)
{
    const struct ibshift_fabric *f = s->fabric;
    bool found = false, is_tree = s->spec.shape->is_tree;

    for (unsigned p = 1; p <= f->nodes[leaf].port_count; p++) {
        uint32_t port = f->ports[ibshift_node_port(f, leaf, p)].peer;

        if (port == IBSHIFT_NO_PORT || ibshift_node_is_switch(f, f->ports[port].node)) {
            continue;
        }
        if (!found) {
            spread(s, leaf, is_tree, is_tree ? w->descent : w->distance, w->queue);
            if (is_tree) {
                climb(s, w);
            }
        }
        found = true;
        route_host(s, w, leaf, p, port);
    }
}

/* Nothing is in the way of the closed form: one table after the other. */
static void route_complete(struct synth *s)
{
    struct ibshift_fabric *f = s->fabric;

    for (uint32_t i = 0; i < f->switch_count; i++) {
        for (uint32_t h = 0; h < f->host_count; h++) {
            const struct ibshift_port *host = &f->ports[f->hosts[h]];

            for (unsigned offset = 0; offset < 1u << host->lmc; offset++) {
                ibshift_lft_set(f, i, host->lid + offset,
                                closed_form(s, f->switches[i], s->place[host->node], offset));
            }
        }
    }
}

int synth_route(struct synth *s, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = s->fabric;
    struct ways w = {.distance = calloc(f->node_count, sizeof(*w.distance)),
                     .descent = calloc(f->node_count, sizeof(*w.descent)),
                     .queue = calloc(f->node_count, sizeof(*w.queue)),
                     .load = calloc((size_t)f->port_count + 1, sizeof(*w.load))};
    int rc = ibshift_fabric_tables_new(s->fabric, err);

    if (rc == 0 && (!w.distance || !w.descent || !w.queue || !w.load)) {
        rc = ibshift_fail(err, -ENOMEM, "no memory to route %u nodes", f->node_count);
    }
    if (rc == 0 && s->complete && !s->spec.minhop) {
        route_complete(s);
    }
    for (uint32_t i = 0; rc == 0 && (!s->complete || s->spec.minhop) && i < f->switch_count; i++) {
        route_leaf(s, &w, f->switches[i]);
    }
    free(w.distance);
    free(w.descent);
    free(w.queue);
    free(w.load);
    return rc;
}
