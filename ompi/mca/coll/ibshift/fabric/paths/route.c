#include "fabric/paths/route.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
