#include "fabric/paths/route.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/rate.h"

/* The port that node sends the LID out of, 0 if none that has a cable. */
static unsigned next_port(const struct ibshift_fabric *f, uint32_t node, unsigned lid)
{
    const struct ibshift_node *n = &f->nodes[node];
    unsigned port;

    if (f->lft == NULL || lid >= f->lft_stride) {
        return 0;
    }
    port = ibshift_lft_get(f, n->switch_index, lid);
    if (port > n->port_count || port == 0 ||
        f->ports[n->first_port + port - 1].peer == IBSHIFT_NO_PORT) {
        return 0;
    }
    return port;
}

/* From the link `out` on to the port that owns the LID. */
static int walk(const struct ibshift_fabric *f, uint32_t out, unsigned lid, uint32_t *links,
                int room, int *walked)
{
    uint32_t goal = f->lid_port[lid];
    int count = 0;

    for (;;) {
        uint32_t in = f->ports[out].peer, node = f->ports[in].node;
        unsigned port;

        if (count >= room) {
            return -ENOBUFS;
        }
        links[count++] = out;
        *walked = count;
        if (!ibshift_node_is_switch(f, node)) {
            return in == goal ? count : -ESTALE;
        }
        if ((uint32_t)count > f->switch_count + 1) {
            return -ELOOP;
        }
        port = next_port(f, node, lid);
        if (port == 0) {
            return -EHOSTUNREACH;
        }
        out = ibshift_node_port(f, node, port);
    }
}

int ibshift_route_walk(const struct ibshift_fabric *f, uint32_t host, unsigned lid, uint32_t *links,
                       int room, int *walked)
{
    uint32_t goal = lid <= IBSHIFT_LID_MAX ? f->lid_port[lid] : IBSHIFT_NO_PORT;

    *walked = 0;
    if (goal == IBSHIFT_NO_PORT || goal == f->hosts[host]) {
        return goal == IBSHIFT_NO_PORT ? -ENOENT : 0;
    }
    return walk(f, f->hosts[host], lid, links, room, walked);
}

void ibshift_route_explain(const struct ibshift_fabric *f, uint32_t host, unsigned lid, int code,
                           const uint32_t *links, int walked, struct ibshift_error *err)
{
    const char *from = ibshift_host_name(f, host);
    const char *last = walked > 0 && f->ports[links[walked - 1]].peer != IBSHIFT_NO_PORT
                           ? ibshift_node_name(f, ibshift_port_neighbour(f, links[walked - 1]))
                           : from;

    switch (code) {
    case -ENOENT:
        ibshift_fail(err, code, "no host has LID %u", lid);
        break;
    case -EHOSTUNREACH:
        ibshift_fail(err, code, "'%s' to LID %u: switch '%s' has no usable entry", from, lid, last);
        break;
    case -ELOOP:
        ibshift_fail(err, code, "'%s' to LID %u runs in a circle through '%s'", from, lid, last);
        break;
    case -ESTALE:
        ibshift_fail(err, code, "'%s' to LID %u ends at '%s', which has another LID", from, lid,
                     last);
        break;
    default:
        ibshift_fail(err, code, "'%s' to LID %u: %s", from, lid, strerror(-code));
    }
}

/* ---- every destination ---- */

/* By switch: the hosts on it, and two of them. */
struct leaf {
    uint32_t hosts, two[2];
};

static uint32_t leaf_of(const struct ibshift_fabric *f, uint32_t host)
{
    uint32_t node = ibshift_port_neighbour(f, f->hosts[host]);

    return ibshift_node_is_switch(f, node) ? f->nodes[node].switch_index : IBSHIFT_NO_SWITCH;
}

static struct leaf *find_leaves(const struct ibshift_fabric *f, struct ibshift_error *err)
{
    struct leaf *leaves = NULL;

    if (f->lft == NULL) {
        ibshift_fail(err, -ENODATA, "the fabric has no forwarding tables");
        return NULL;
    }
    leaves = calloc((size_t)f->switch_count + 1, sizeof(*leaves));
    if (leaves == NULL) {
        ibshift_fail(err, -ENOMEM, "no memory for %u switches", f->switch_count);
        return NULL;
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t s = leaf_of(f, h);

        if (s != IBSHIFT_NO_SWITCH) {
            leaves[s].two[leaves[s].hosts++ != 0] = h;
        }
    }
    return leaves;
}

/* Does the route climb again after a link that does not? The last link leads to the host. */
static bool turns_up(const struct ibshift_fabric *f, const uint8_t *level, const uint32_t *links,
                     int count)
{
    bool turned = false;

    for (int i = 0; i + 1 < count; i++) {
        uint32_t here = f->ports[links[i]].node, next = ibshift_port_neighbour(f, links[i]);

        if (level[next] > level[here] && turned) {
            return true;
        }
        turned = turned || level[next] <= level[here];
    }
    return false;
}

static void check_route(const struct ibshift_fabric *f, uint32_t sw, uint32_t host, unsigned lid,
                        const uint8_t *level, struct ibshift_table_check *check)
{
    const char *from = ibshift_node_name(f, f->switches[sw]), *to = ibshift_host_name(f, host);
    unsigned port = next_port(f, f->switches[sw], lid);
    uint32_t links[IBSHIFT_ROUTE_MAX];
    int walked, count = -EHOSTUNREACH;

    if (port != 0) {
        count = walk(f, ibshift_node_port(f, f->switches[sw], port), lid, links, IBSHIFT_ROUTE_MAX,
                     &walked);
    }
    check->routes++;
    if (count == -EHOSTUNREACH) {
        check->lost++;
        ibshift_warn(&check->problems, "'%s' to '%s' (LID %u): no next hop", from, to, lid);
    } else if (count == -ESTALE) {
        check->strays++;
        ibshift_warn(&check->problems, "'%s' to '%s' (LID %u) ends at another host", from, to, lid);
    } else if (count < 0) {
        check->circles++;
        ibshift_warn(&check->problems, "'%s' to '%s' (LID %u) runs in a circle", from, to, lid);
    } else {
        check->longest = count + 1u > check->longest ? count + 1u : check->longest;
        check->turns += level != NULL && turns_up(f, level, links, count);
    }
}

int ibshift_fabric_check(const struct ibshift_fabric *f, const uint8_t *level,
                         struct ibshift_table_check *check, struct ibshift_error *err)
{
    struct leaf *leaves = find_leaves(f, err);

    memset(check, 0, sizeof(*check));
    if (leaves == NULL) {
        return f->lft == NULL ? -ENODATA : -ENOMEM;
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        for (unsigned i = 0; i < ibshift_host_lid_count(f, h); i++) {
            unsigned lid = ibshift_host_lid(f, h) + i;

            for (uint32_t s = 0; lid != 0 && s < f->switch_count; s++) {
                if (leaves[s].hosts > 0) {
                    check_route(f, s, h, lid, level, check);
                }
            }
        }
    }
    free(leaves);
    return 0;
}

/* Of first[count], those that are in links[] too. */
static int intersect(uint32_t *first, int count, const uint32_t *links, int length)
{
    int kept = 0;

    for (int i = 0; i < count; i++) {
        for (int k = 0; k < length; k++) {
            if (first[i] == links[k]) {
                first[kept++] = first[i];
                break;
            }
        }
    }
    return kept;
}

/* The flows of `senders` hosts of a leaf, `from` being one, towards a host, on the links that the routes to all
 * its LIDs have. */
static void add_flows(const struct ibshift_fabric *f, uint32_t from, uint32_t to, uint32_t senders,
                      double *no_way_by)
{
    uint32_t common[IBSHIFT_ROUTE_MAX], links[IBSHIFT_ROUTE_MAX];
    unsigned lid = ibshift_host_lid(f, to), lids = ibshift_host_lid_count(f, to);
    int walked, count = -1;

    for (unsigned i = 0; lid != 0 && i < lids; i++) {
        int length = ibshift_route_walk(f, from, lid + i, links, IBSHIFT_ROUTE_MAX, &walked);

        if (length > 0 && count >= 0) {
            count = intersect(common, count, links + 1, length - 1);
        } else if (length > 0) {
            count = length - 1;
            memcpy(common, links + 1, (size_t)count * sizeof(*common));
        }
    }
    for (int k = 0; k < count; k++) {
        no_way_by[common[k]] += senders;
    }
}

static void add_all(const struct ibshift_fabric *f, const struct leaf *leaves, double *no_way_by)
{
    for (uint32_t h = 0; h < f->host_count; h++) {
        no_way_by[f->hosts[h]] = f->host_count - 1;
    }
    /* One destination at a time: its column of the tables stays in the cache. */
    for (uint32_t to = 0; to < f->host_count; to++) {
        uint32_t own = leaf_of(f, to);

        for (uint32_t s = 0; s < f->switch_count; s++) {
            const struct leaf *l = &leaves[s];

            if (l->hosts > (s == own)) {
                add_flows(f, l->two[l->two[0] == to], to, l->hosts - (s == own), no_way_by);
            }
        }
    }
}

static void weigh(const struct ibshift_fabric *f, const double *no_way_by, double *least,
                  uint32_t *link)
{
    uint32_t fastest = ibshift_rate_of_hosts(f, NULL, f->host_count);
    double own = 0;

    for (uint32_t h = 0; h < f->host_count; h++) {
        double cost = ibshift_link_cost(f, f->hosts[h], fastest);

        own = cost > own ? cost : own;
    }
    own *= f->host_count > 1 ? f->host_count - 1 : 1;
    *least = f->host_count > 1;
    *link = f->host_count > 0 ? f->hosts[0] : 0;
    for (uint32_t p = 0; own > 0 && p < f->port_count; p++) {
        double load = no_way_by[p] * (ibshift_link_cost(f, p, fastest) / own);

        if (load > *least + 1e-9) {
            *least = load;
            *link = p;
        }
    }
}

int ibshift_load_find(const struct ibshift_fabric *f, double *least, uint32_t *link,
                      struct ibshift_error *err)
{
    struct leaf *leaves = find_leaves(f, err);
    double *no_way_by = calloc((size_t)f->port_count + 1, sizeof(*no_way_by));
    int rc = leaves != NULL ? 0 : f->lft == NULL ? -ENODATA : -ENOMEM;

    if (rc == 0 && no_way_by == NULL) {
        rc = ibshift_fail(err, -ENOMEM, "no memory for %u links", f->port_count);
    }
    if (rc == 0) {
        add_all(f, leaves, no_way_by);
        weigh(f, no_way_by, least, link);
    }
    free(leaves);
    free(no_way_by);
    return rc;
}
