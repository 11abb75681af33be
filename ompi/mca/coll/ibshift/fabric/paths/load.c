#include "fabric/paths/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/rate.h"
#include "fabric/paths/route.h"

struct loader {
    const struct ibshift_fabric *f;
    uint32_t *senders;   /* [switch]: its hosts */
    uint32_t (*two)[2];  /* [switch]: two of them */
    uint32_t *to_base;   /* [directed link]: flows to base LIDs */
    uint32_t *no_way_by; /* [directed link]: flows that all LIDs of the destination bring here */
    uint64_t *seen;      /* [directed link]: the last pair and how many of its routes came by */
    uint64_t pair;
};

static uint32_t leaf_of(const struct ibshift_fabric *f, uint32_t host)
{
    uint32_t node = ibshift_port_neighbour(f, f->hosts[host]);

    return ibshift_node_is_switch(f, node) ? f->nodes[node].switch_index : IBSHIFT_NO_SWITCH;
}

static int loader_open(struct loader *l, const struct ibshift_fabric *f, struct ibshift_error *err)
{
    size_t switches = (size_t)f->switch_count + 1, links = (size_t)f->port_count + 1;

    *l = (struct loader){.f = f,
                         .senders = calloc(switches, sizeof(*l->senders)),
                         .two = calloc(switches, sizeof(*l->two)),
                         .to_base = calloc(links, sizeof(*l->to_base)),
                         .no_way_by = calloc(links, sizeof(*l->no_way_by)),
                         .seen = calloc(links, sizeof(*l->seen))};
    if (!l->senders || !l->two || !l->to_base || !l->no_way_by || !l->seen) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u links", f->port_count);
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t leaf = leaf_of(f, h);

        l->to_base[f->hosts[h]] = l->no_way_by[f->hosts[h]] = f->host_count - 1;
        if (leaf != IBSHIFT_NO_SWITCH) {
            l->two[leaf][l->senders[leaf]++ == 0 ? 0 : 1] = h;
        }
    }
    return 0;
}

static void loader_close(struct loader *l)
{
    free(l->senders);
    free(l->two);
    free(l->to_base);
    free(l->no_way_by);
    free(l->seen);
}

/* Marks the links of a route; returns its length, 0 if it does not arrive. `before` routes of the
 * pair have been marked. */
static int mark(struct loader *l, uint32_t from, unsigned lid, unsigned before, uint32_t *links)
{
    int walked, count = ibshift_route_walk(l->f, from, lid, links, IBSHIFT_ROUTE_MAX, &walked);

    for (int k = 1; k < count; k++) {
        uint64_t *seen = &l->seen[links[k]];

        *seen = before == 0 || *seen == l->pair + before ? l->pair + before + 1 : 0;
    }
    return count > 0 ? count : 0;
}

/* The flows of `senders` hosts of a leaf, `from` being one, towards a host. */
static void add_flows(struct loader *l, uint32_t from, uint32_t to, uint32_t senders)
{
    uint32_t links[2][IBSHIFT_ROUTE_MAX];
    unsigned lid = ibshift_host_lid(l->f, to), lids = ibshift_host_lid_count(l->f, to), arrived = 0;
    int count = 0;

    l->pair += (1u << IBSHIFT_LMC_MAX) + 1;
    for (unsigned i = 0; lid != 0 && i < lids; i++) {
        int length = mark(l, from, lid + i, arrived, links[i > 0]);

        for (int k = 1; i == 0 && k < length; k++) {
            l->to_base[links[0][k]] += senders;
        }
        if (length > 0 && arrived++ == 0) {
            count = length;
            memcpy(links[0], links[i > 0], (size_t)length * sizeof(links[0][0]));
        }
    }
    for (int k = 1; k < count; k++) {
        l->no_way_by[links[0][k]] += l->seen[links[0][k]] == l->pair + arrived ? senders : 0;
    }
}

static void add_all(struct loader *l)
{
    const struct ibshift_fabric *f = l->f;

    /* One destination at a time: its column of the tables stays in the cache. */
    for (uint32_t to = 0; to < f->host_count; to++) {
        uint32_t own = leaf_of(f, to);

        for (uint32_t s = 0; s < f->switch_count; s++) {
            uint32_t senders = l->senders[s] - (s == own);

            if (senders > 0 && l->senders[s] > 0) {
                add_flows(l, l->two[s][0] != to ? l->two[s][0] : l->two[s][1], to, senders);
            }
        }
    }
}

static void weigh(const struct loader *l, struct ibshift_load *load)
{
    const struct ibshift_fabric *f = l->f;
    uint32_t fastest = ibshift_rate_of_hosts(f, NULL, f->host_count);
    double own = 0;

    for (uint32_t h = 0; h < f->host_count; h++) {
        double cost = ibshift_link_cost(f, f->hosts[h], fastest);

        own = cost > own ? cost : own;
    }
    own *= f->host_count > 1 ? f->host_count - 1 : 1;
    load->least = f->host_count > 1;
    load->link = f->host_count > 0 ? f->hosts[0] : 0;
    for (uint32_t p = 0; own > 0 && p < f->port_count; p++) {
        double cost = ibshift_link_cost(f, p, fastest) / own, least = l->no_way_by[p] * cost;

        load->on[p] = l->to_base[p] * cost;
        if (least > load->least + 1e-9) {
            load->least = least;
            load->link = p;
        }
    }
}

int ibshift_load_find(const struct ibshift_fabric *f, struct ibshift_load *load,
                      struct ibshift_error *err)
{
    struct loader l;
    int rc;

    *load = (struct ibshift_load){.on = NULL};
    if (f->lft == NULL) {
        return ibshift_fail(err, -ENODATA, "the fabric has no forwarding tables");
    }
    load->on = calloc((size_t)f->port_count + 1, sizeof(*load->on));
    rc = loader_open(&l, f, err);
    if (rc == 0 && load->on == NULL) {
        rc = ibshift_fail(err, -ENOMEM, "no memory for %u links", f->port_count);
    }
    if (rc == 0) {
        add_all(&l);
        weigh(&l, load);
    } else {
        ibshift_load_free(load);
    }
    loader_close(&l);
    return rc;
}

void ibshift_load_free(struct ibshift_load *load)
{
    free(load->on);
    load->on = NULL;
}
