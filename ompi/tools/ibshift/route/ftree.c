/*
 * Engine ftree: E. Zahavi et al., "Optimized InfiniBand fat-tree routing for shift all-to-all
 * communication patterns", Algorithms 2 to 4. One destination after the other climbs from its leaf
 * over the least used ports, in the order of the tuples; at every switch on its way the rest of the
 * part below is led up to it. Hosts that a leaf lacks are routed as if they were there.
 *
 * With an LMC, LID offset k deals the hosts of each leaf out beginning with host k, so that a host's
 * LIDs climb to different switches and each LID offset is as clean as the first.
 */
#include "route/tree.h"

#include <string.h>

struct ftree {
    struct route *r;
    const struct route_tree *t;
    uint32_t *usage; /* [port]: destinations sent out of it */
    uint8_t *column; /* [switch]: port for the destination at hand, 0 = none yet */
    uint32_t *host;  /* [place]: + 1; 0 = a place keeper */
    uint32_t *leaf;  /* [place / hosts a leaf]: + 1; 0: no such leaf */
};

static uint32_t port_index(const struct ftree *e, uint32_t s, unsigned port)
{
    return ibshift_node_port(e->t->f, e->t->f->switches[s], port);
}

static uint32_t usage_of(const struct ftree *e, uint32_t s, unsigned port)
{
    return e->usage[port_index(e, s, port)];
}

static void take_port(struct ftree *e, uint32_t s, unsigned port)
{
    e->column[s] = (uint8_t)port;
    e->usage[port_index(e, s, port)]++;
}

/* The number of the port at the other end. */
static unsigned port_of_peer(const struct ftree *e, uint32_t s, unsigned port)
{
    return e->t->f->ports[e->t->f->ports[port_index(e, s, port)].peer].number;
}

/* Algorithm 3: all below s go up to it, each child by its least used cable. */
static void lead_up(struct ftree *e, uint32_t s)
{
    const struct route_tree *t = e->t;
    const uint8_t *down = t->down + (size_t)s * t->down_stride;
    unsigned l = t->level[s];

    for (unsigned child = 0; l > 1 && child < t->children[l]; child++) {
        const uint8_t *group = down + child * t->ways[l];
        uint32_t other = IBSHIFT_NO_SWITCH;
        unsigned best = 0;

        for (unsigned i = 0; i < t->ways[l]; i++) {
            unsigned port;

            if (group[i] == 0) {
                continue;
            }
            other = route_next_switch(t->f, s, group[i]);
            port = port_of_peer(e, s, group[i]);
            if (best == 0 || usage_of(e, other, port) < usage_of(e, other, best)) {
                best = port;
            }
        }
        if (best != 0 && e->column[other] == 0) {
            take_port(e, other, best);
            lead_up(e, other);
        }
    }
}

/* Algorithm 4: the parent whose port down to s is least used brings the destination to s. */
static void climb(struct ftree *e, uint32_t s)
{
    const struct route_tree *t = e->t;
    const uint8_t *up = t->up + (size_t)s * t->up_stride;
    unsigned l = t->level[s], best = 0;
    uint32_t parent = IBSHIFT_NO_SWITCH;

    for (unsigned i = 0; l < t->h && i < t->ups[l]; i++) {
        uint32_t other;
        unsigned port;

        if (up[i] == 0) {
            continue;
        }
        other = route_next_switch(t->f, s, up[i]);
        port = port_of_peer(e, s, up[i]);
        if (best == 0 || usage_of(e, other, port) < usage_of(e, parent, best)) {
            parent = other;
            best = port;
        }
    }
    if (best != 0) {
        take_port(e, parent, best);
    }
    lead_up(e, s);
    if (best != 0) {
        climb(e, parent);
    }
}

static void route_place(struct ftree *e, uint32_t leaf, uint32_t host, unsigned lid_offset)
{
    struct ibshift_fabric *f = e->r->fabric;
    bool is_kept = host == 0;
    unsigned lid = is_kept ? 0 : ibshift_host_lid(f, host - 1) + lid_offset;

    memset(e->column, 0, f->switch_count);
    e->column[leaf] = is_kept ? 1 : f->ports[f->ports[f->hosts[host - 1]].peer].number;
    climb(e, leaf);
    for (uint32_t s = 0; !is_kept && s < f->switch_count; s++) {
        ibshift_lft_set(f, s, lid, e->column[s]);
    }
}

/* Algorithm 2, once for each LID offset. */
static void route_offset_of_all(struct ftree *e, unsigned lid_offset)
{
    const struct route_tree *t = e->t;
    unsigned hosts = t->children[1];

    for (uint32_t start = 0; start < t->places; start += hosts) {
        uint32_t leaf = e->leaf[start / hosts];

        for (unsigned i = 0; leaf != 0 && i < hosts; i++) {
            uint32_t host = e->host[start + (i + lid_offset) % hosts];

            if (host == 0 || lid_offset < ibshift_host_lid_count(t->f, host - 1)) {
                route_place(e, leaf - 1, host, lid_offset);
            }
        }
    }
}

static void seat_hosts(struct ftree *e)
{
    const struct route_tree *t = e->t;

    for (uint32_t h = 0; h < t->f->host_count; h++) {
        if (t->place[h] != ROUTE_NO_PLACE) {
            e->host[t->place[h]] = h + 1;
            e->leaf[t->place[h] / t->children[1]] = route_host_switch(t->f, h) + 1;
        }
    }
}

int route_ftree(struct route *r, struct ibshift_error *err)
{
    struct route_tree t;
    struct ftree e = {.r = r, .t = &t};
    int rc = route_tree_find(r->fabric, false, &t, err);

    if (rc != 0) {
        return rc;
    }
    e.usage = pool_new(&t.pool, t.f->port_count, sizeof(*e.usage));
    e.column = pool_new(&t.pool, t.f->switch_count, 1);
    e.host = pool_new(&t.pool, t.places, sizeof(*e.host));
    e.leaf = pool_new(&t.pool, t.places, sizeof(*e.leaf));
    seat_hosts(&e);
    for (unsigned lid_offset = 0, lids = route_most_lids(t.f); lid_offset < lids; lid_offset++) {
        route_offset_of_all(&e, lid_offset);
    }
    rc = route_tree_fill(r, &t, err);
    if (rc == 0) {
        route_tree_switches(r, &t);
        route_tree_order(&t, r);
    }
    route_tree_free(&t);
    return rc;
}
