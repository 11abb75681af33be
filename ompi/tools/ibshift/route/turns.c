#include "route/turns.h"

#include <errno.h>
#include <string.h>

/* Of cables that lead from a switch to itself nothing comes. */
static void take_arcs(struct route_net *net, uint32_t *arc_of)
{
    const struct ibshift_fabric *f = net->f;

    net->arc_count = 0;
    for (uint32_t s = 0; s < net->switches; s++) {
        const struct ibshift_node *node = &f->nodes[f->switches[s]];

        net->first[s] = net->arc_count;
        for (unsigned i = 0; i < node->port_count; i++) {
            uint32_t port = node->first_port + i, to = ibshift_switch_behind(f, port);

            if (to != IBSHIFT_NO_SWITCH && to != s) {
                arc_of[port] = net->arc_count;
                net->arcs[net->arc_count++] = (struct route_arc){s, to, 0, (uint8_t)(i + 1)};
            }
        }
    }
    net->first[net->switches] = net->arc_count;
    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t port = ibshift_node_port(f, f->switches[net->arcs[a].from], net->arcs[a].port);

        net->arcs[a].back = arc_of[f->ports[port].peer];
    }
}

static int take_targets(struct route_net *net, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = net->f;

    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t peer = f->ports[f->hosts[h]].peer, sw = ibshift_switch_behind(f, f->hosts[h]);

        if (sw == IBSHIFT_NO_SWITCH) {
            return ibshift_fail(err, -ENOTSUP, "host '%s' is not on a switch",
                                ibshift_host_name(f, h));
        }
        for (unsigned i = 0; i < ibshift_host_lid_count(f, h); i++) {
            net->targets[net->target_count++] =
                (struct route_target){sw, (uint16_t)(ibshift_host_lid(f, h) + i),
                                      f->ports[peer].number, net->hosts[sw]++};
        }
    }
    for (uint32_t s = 0; s < net->switches; s++) {
        uint16_t lid = f->nodes[f->switches[s]].lid;

        if (net->hosts[s] == 0 && lid != 0) {
            net->targets[net->target_count++] = (struct route_target){s, lid, 0, 0};
        }
    }
    return 0;
}

/* Cables from source to each switch, UINT32_MAX where there is no way; queue has room for all. */
static void net_distances(const struct route_net *net, uint32_t source, uint32_t *distance,
                          uint32_t *queue)
{
    uint32_t head = 0, tail = 0;

    memset(distance, 0xff, net->switches * sizeof(*distance));
    distance[source] = 0;
    queue[tail++] = source;
    while (head < tail) {
        uint32_t s = queue[head++];

        for (uint32_t a = net->first[s]; a < net->first[s + 1]; a++) {
            uint32_t to = net->arcs[a].to;

            if (distance[to] == UINT32_MAX) {
                distance[to] = distance[s] + 1;
                queue[tail++] = to;
            }
        }
    }
}

static int check_connected(const struct route_net *net, struct ibshift_error *err)
{
    struct pool pool = {NULL};
    uint32_t *distance = pool_new(&pool, net->switches, sizeof(*distance)), apart = 0;
    uint32_t *queue = pool_new(&pool, net->switches, sizeof(*queue));

    net_distances(net, 0, distance, queue);
    while (apart < net->switches && distance[apart] != UINT32_MAX) {
        apart++;
    }
    pool_free(&pool);
    return apart == net->switches
               ? 0
               : ibshift_fail(err, -ENOTSUP, "no cables join switch '%s' and switch '%s'",
                              route_net_name(net, 0), route_net_name(net, apart));
}

int route_net_open(const struct ibshift_fabric *f, struct route_net *net, struct ibshift_error *err)
{
    size_t switches = (size_t)f->switch_count + 1, targets = switches;
    int rc;

    for (uint32_t h = 0; h < f->host_count; h++) {
        targets += ibshift_host_lid_count(f, h);
    }
    *net = (struct route_net){.f = f, .switches = f->switch_count};
    net->first = pool_new(&net->pool, switches, sizeof(*net->first));
    net->arcs = pool_new(&net->pool, f->port_count, sizeof(*net->arcs));
    net->targets = pool_new(&net->pool, targets, sizeof(*net->targets));
    net->hosts = pool_new(&net->pool, switches, sizeof(*net->hosts));
    take_arcs(net, pool_new(&net->pool, f->port_count, sizeof(uint32_t)));
    rc = take_targets(net, err);
    return rc == 0 ? check_connected(net, err) : rc;
}

/* Sums of distances to all others, by which the tree is grown. */
static void measure(const struct route_net *net, struct pool *pool, uint64_t *far)
{
    uint32_t *distance = pool_new(pool, net->switches, sizeof(*distance));
    uint32_t *queue = pool_new(pool, net->switches, sizeof(*queue));

    for (uint32_t s = 0; s < net->switches; s++) {
        net_distances(net, s, distance, queue);
        for (uint32_t to = 0; to < net->switches; to++) {
            far[s] += distance[to];
        }
    }
}

/* The arc to the switch that comes next below s, or UINT32_MAX. inside: cables into the tree. */
static uint32_t best_child(const struct route_turns *t, uint32_t s, const uint64_t *far,
                           const uint32_t *inside)
{
    const struct route_net *net = &t->net;
    uint32_t best = UINT32_MAX;

    for (uint32_t a = net->first[s]; a < net->first[s + 1]; a++) {
        uint32_t to = net->arcs[a].to, chosen;

        if (t->label[to] != UINT32_MAX) {
            continue;
        }
        chosen = best == UINT32_MAX ? to : net->arcs[best].to;
        if (best == UINT32_MAX || inside[to] > inside[chosen] ||
            (inside[to] == inside[chosen] &&
             (far[to] > far[chosen] || (to < chosen && far[to] == far[chosen])))) {
            best = a;
        }
    }
    return best;
}

static void enter(struct route_turns *t, uint32_t s, uint32_t parent, uint32_t label,
                  uint32_t *inside)
{
    const struct route_net *net = &t->net;

    t->label[s] = label;
    t->parent[s] = parent;
    for (uint32_t a = net->first[s]; a < net->first[s + 1]; a++) {
        inside[net->arcs[a].to]++;
    }
}

/*
 * The spanning tree, depth first (section 3 of J. C. Sancho et al., "Routing in InfiniBand torus
 * network topologies"): its root is the switch farthest from the others on average, the next is
 * the one with most cables to switches of the tree, then the farthest, then the first.
 */
static void span(struct route_turns *t)
{
    const struct route_net *net = &t->net;
    struct pool pool = {NULL};
    uint64_t *far = pool_new(&pool, net->switches, sizeof(*far));
    uint32_t *inside = pool_new(&pool, net->switches, sizeof(*inside));
    uint32_t at = 0, labels = 0;

    measure(net, &pool, far);
    for (uint32_t s = 0; s < net->switches; s++) {
        t->label[s] = UINT32_MAX;
        at = far[s] > far[at] ? s : at;
    }
    enter(t, at, UINT32_MAX, labels++, inside);
    while (labels < net->switches) {
        uint32_t arc = best_child(t, at, far, inside);

        if (arc != UINT32_MAX) {
            at = net->arcs[arc].to;
            enter(t, at, net->arcs[arc].back, labels++, inside);
        } else {
            at = net->arcs[t->parent[at]].to; /* connected: the root is left last */
        }
    }
    pool_free(&pool);
}

int route_turns_open(const struct ibshift_fabric *f, struct route_turns *t,
                     struct ibshift_error *err)
{
    struct route_net *net = &t->net;
    int rc = route_net_open(f, net, err);

    if (rc != 0) {
        return rc;
    }
    t->count = 0;
    t->from = pool_new(&net->pool, net->arc_count, sizeof(*t->from));
    t->label = pool_new(&net->pool, net->switches, sizeof(*t->label));
    t->parent = pool_new(&net->pool, net->switches, sizeof(*t->parent));
    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t to = net->arcs[a].to;

        t->from[a] = t->count;
        t->count += net->first[to + 1] - net->first[to];
    }
    t->allowed = pool_new(&net->pool, t->count, 1);
    span(t);
    return 0;
}
