#include "bound/least.h"

#include <math.h>
#include <string.h>

#include "fabric/graph/rate.h"

#define NOTHING    1e-9 /* of a block: sums of reals */
#define EFFORT     3e8  /* steps of all searches of shortest ways: a second */
#define ROUNDS_MAX 200

static uint32_t ranks_on(const struct fabric_net *net, uint32_t member)
{
    const struct ibshift_placement *p = net->placement;

    return p->start[member + 1] - p->start[member];
}

uint32_t fabric_net_node(const struct fabric_net *net, uint32_t node)
{
    const struct ibshift_placement *p = net->placement;
    const struct ibshift_fabric *f = p->fabric;

    return node < p->hosts ? f->ports[f->hosts[p->host[node]]].node : f->switches[node - p->hosts];
}

/* The cable at a port, once: from the end with the lower number, or that is a host's. */
static void add_cable(struct fabric_net *net, const uint32_t *node_at, uint32_t port,
                      uint32_t fastest)
{
    const struct ibshift_fabric *f = net->placement->fabric;
    uint32_t peer = f->ports[port].peer, from = node_at[port], to;
    struct fabric_edge *e = &net->edge[net->edges];

    to = peer == IBSHIFT_NO_PORT ? IBSHIFT_NO_NODE : node_at[peer];
    if (to == IBSHIFT_NO_NODE || from == IBSHIFT_NO_NODE || port > peer) {
        return;
    }
    e[0] = (struct fabric_edge){from, to, port, 1 / ibshift_link_cost(f, port, fastest)};
    e[1] = (struct fabric_edge){to, from, peer, e[0].capacity};
    net->edges += 2;
}

static void index_edges(struct fabric_net *net)
{
    uint32_t *at;

    net->first = pool_new(net->pool, net->nodes + 2, sizeof(*net->first));
    net->leaving = pool_new(net->pool, net->edges, sizeof(*net->leaving));
    for (uint32_t e = 0; e < net->edges; e++) {
        net->first[net->edge[e].from + 2]++;
    }
    for (uint32_t n = 0; n < net->nodes; n++) {
        net->first[n + 2] += net->first[n + 1];
    }
    at = net->first + 1; /* becomes the end of each, which is the first of the next */
    for (uint32_t e = 0; e < net->edges; e++) {
        net->leaving[at[net->edge[e].from]++] = e;
    }
}

void fabric_net_make(struct fabric_net *net, const struct ibshift_placement *placement,
                     struct pool *pool)
{
    const struct ibshift_fabric *f = placement->fabric;
    uint32_t *node_at = pool_new(pool, f->port_count, sizeof(*node_at));
    uint32_t fastest = ibshift_rate_of_hosts(f, placement->host, placement->hosts);

    *net = (struct fabric_net){.placement = placement,
                               .pool = pool,
                               .nodes = placement->hosts + f->switch_count,
                               .edge = pool_new(pool, f->port_count, sizeof(*net->edge))};
    memset(node_at, 0xff, f->port_count * sizeof(*node_at));
    for (uint32_t m = 0; m < placement->hosts; m++) {
        node_at[f->hosts[placement->host[m]]] = m;
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        for (unsigned p = 1; p <= f->nodes[f->switches[s]].port_count; p++) {
            node_at[ibshift_node_port(f, f->switches[s], p)] = placement->hosts + s;
        }
    }
    for (uint32_t port = 0; port < f->port_count; port++) {
        add_cable(net, node_at, port, fastest);
    }
    index_edges(net);
}

/* Maximum flows: what all others have, through the net to one host; Dinic's algorithm. */

struct flow {
    const struct fabric_net *net;
    double *room;    /* [edge]: left; what flows one way leaves room for the other */
    double *source;  /* [member]: blocks that have not left it */
    uint32_t *level; /* [node]: edges from a source that has some left */
    uint32_t *now;   /* [node]: the next edge that is looked at */
    uint32_t *path, *queue;
};

/* Levels from all hosts that have blocks left; whether the sink has one. */
static bool find_levels(struct flow *f, uint32_t sink)
{
    const struct fabric_net *net = f->net;
    uint32_t count = 0;

    memset(f->level, 0xff, net->nodes * sizeof(*f->level));
    for (uint32_t m = 0; m < net->placement->hosts; m++) {
        if (f->source[m] > NOTHING) {
            f->level[m] = 0;
            f->queue[count++] = m;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = f->queue[i];

        for (uint32_t k = net->first[node]; k < net->first[node + 1]; k++) {
            uint32_t e = net->leaving[k], to = net->edge[e].to;

            if (f->room[e] > NOTHING && f->level[to] == UINT32_MAX) {
                f->level[to] = f->level[node] + 1;
                f->queue[count++] = to;
            }
        }
    }
    memcpy(f->now, net->first, net->nodes * sizeof(*f->now));
    return f->level[sink] != UINT32_MAX;
}

/* The edges of a way down the levels; their number, 0: there is none. */
static uint32_t find_way(struct flow *f, uint32_t from, uint32_t sink)
{
    const struct fabric_net *net = f->net;
    uint32_t node = from, length = 0;

    while (node != sink) {
        uint32_t k = f->now[node], e = k < net->first[node + 1] ? net->leaving[k] : 0;

        if (k == net->first[node + 1]) {
            if (length == 0) {
                return 0;
            }
            node = net->edge[f->path[--length]].from;
            f->now[node]++;
        } else if (f->room[e] > NOTHING && f->level[net->edge[e].to] == f->level[node] + 1) {
            f->path[length++] = e;
            node = net->edge[e].to;
        } else {
            f->now[node]++;
        }
    }
    return length;
}

static void send_along(struct flow *f, uint32_t from, uint32_t length)
{
    double most = length > 0 ? f->source[from] : 0;

    for (uint32_t i = 0; i < length; i++) {
        most = fmin(most, f->room[f->path[i]]);
    }
    f->source[from] -= most;
    for (uint32_t i = 0; i < length; i++) {
        f->room[f->path[i]] -= most;
        f->room[f->path[i] ^ 1] += most;
    }
}

/* Whether all blocks come to the sink in that time; the levels then say which nodes have some left. */
static bool arrives(struct flow *f, uint32_t sink, double time)
{
    const struct fabric_net *net = f->net;
    double left = 0;

    for (uint32_t e = 0; e < net->edges; e++) {
        f->room[e] = time * net->edge[e].capacity;
    }
    for (uint32_t m = 0; m < net->placement->hosts; m++) {
        f->source[m] = m == sink ? 0 : ranks_on(net, m);
    }
    while (find_levels(f, sink)) {
        for (uint32_t m = 0; m < net->placement->hosts; m++) {
            uint32_t length = 1;

            while (f->source[m] > NOTHING && f->level[m] == 0 && length > 0) {
                length = find_way(f, m, sink);
                send_along(f, m, length);
            }
        }
    }
    for (uint32_t m = 0; m < net->placement->hosts; m++) {
        left += f->source[m];
    }
    return left <= 1e-6;
}

/* The time of the set of nodes that no block is left at. */
static double time_of(const struct flow *f)
{
    const struct fabric_net *net = f->net;
    double blocks = 0, capacity = 0;

    for (uint32_t m = 0; m < net->placement->hosts; m++) {
        blocks += f->level[m] != UINT32_MAX ? ranks_on(net, m) : 0;
    }
    for (uint32_t e = 0; e < net->edges; e++) {
        const struct fabric_edge *edge = &net->edge[e];

        capacity += f->level[edge->from] != UINT32_MAX && f->level[edge->to] == UINT32_MAX
                        ? edge->capacity
                        : 0;
    }
    return blocks / capacity;
}

/* The host alone: what its own cable takes. */
static double time_of_host(const struct fabric_net *net, uint32_t member)
{
    uint32_t e = net->leaving[net->first[member]];

    return (net->placement->ranks - ranks_on(net, member)) / net->edge[e].capacity;
}

double fabric_bound_cut(const struct fabric_net *net, bool **is_inside)
{
    uint32_t hosts = net->placement->hosts, worst = 0;
    struct flow f = {.net = net,
                     .room = pool_new(net->pool, net->edges, sizeof(*f.room)),
                     .source = pool_new(net->pool, hosts, sizeof(*f.source)),
                     .level = pool_new(net->pool, net->nodes, sizeof(*f.level)),
                     .now = pool_new(net->pool, net->nodes, sizeof(*f.now)),
                     .path = pool_new(net->pool, net->nodes, sizeof(*f.path)),
                     .queue = pool_new(net->pool, net->nodes, sizeof(*f.queue))};
    double time;

    for (uint32_t m = 0; m < hosts; m++) {
        worst = time_of_host(net, m) > time_of_host(net, worst) ? m : worst;
    }
    time = time_of_host(net, worst);
    *is_inside = pool_new(net->pool, net->nodes, sizeof(**is_inside));
    (*is_inside)[worst] = true;
    for (uint32_t m = 0; m < hosts && time > 0; m++) {
        while (!arrives(&f, m, time) && time_of(&f) > time * (1 + NOTHING)) {
            time = time_of(&f);
            for (uint32_t n = 0; n < net->nodes; n++) {
                (*is_inside)[n] = f.level[n] == UINT32_MAX;
            }
        }
    }
    return time;
}

/* Lengths: shortest ways from each switch that has hosts of the job, and what they put on the edges. */

struct ways {
    const struct fabric_net *net;
    uint32_t leaves;  /* switches with hosts */
    double *ranks;    /* [node]: on the hosts of a switch */
    double *distance; /* [node] */
    double *behind;   /* [node]: ranks whose way passes it */
    uint32_t *by;     /* [node]: the edge that its way comes by */
    uint32_t *order;  /* nodes by their distance */
    bool *is_done;
    double *load; /* [edge]: blocks, of those that take the shortest ways */
    double *length, *grown;
};

/* Dijkstra among the switches, whose number is small; how many are reached. */
static uint32_t find_ways(struct ways *w, uint32_t from)
{
    const struct fabric_net *net = w->net;
    uint32_t hosts = net->placement->hosts, count = 0, node = from;

    for (uint32_t n = hosts; n < net->nodes; n++) {
        w->distance[n] = INFINITY;
        w->is_done[n] = false;
    }
    w->distance[from] = 0;
    while (node < net->nodes) {
        w->is_done[node] = true;
        w->order[count++] = node;
        for (uint32_t k = net->first[node]; k < net->first[node + 1]; k++) {
            uint32_t e = net->leaving[k], to = net->edge[e].to;

            if (to >= hosts && w->distance[node] + w->length[e] < w->distance[to]) {
                w->distance[to] = w->distance[node] + w->length[e];
                w->by[to] = e;
            }
        }
        node = net->nodes;
        for (uint32_t n = hosts; n < net->nodes; n++) {
            if (!w->is_done[n] &&
                w->distance[n] < (node < net->nodes ? w->distance[node] : INFINITY)) {
                node = n;
            }
        }
    }
    return count;
}

static void load_ways(struct ways *w, uint32_t from)
{
    const struct fabric_net *net = w->net;
    uint32_t count = find_ways(w, from);

    for (uint32_t i = 0; i < count; i++) {
        w->behind[w->order[i]] = w->ranks[w->order[i]];
    }
    while (--count > 0) {
        uint32_t node = w->order[count], e = w->by[node];

        w->load[e] += w->ranks[from] * w->behind[node];
        w->behind[net->edge[e].from] += w->behind[node];
    }
}

/* What all ways put on the edges, and the bound that the lengths prove by that. */
static double load_all(struct ways *w)
{
    const struct fabric_net *net = w->net;
    uint32_t hosts = net->placement->hosts;
    double blocks = 0, capacity = 0;

    memset(w->load, 0, net->edges * sizeof(*w->load));
    for (uint32_t m = 0; m < hosts; m++) {
        uint32_t e = net->leaving[net->first[m]];

        w->load[e] = w->load[e ^ 1] =
            (double)ranks_on(net, m) * (net->placement->ranks - ranks_on(net, m));
    }
    for (uint32_t n = hosts; n < net->nodes; n++) {
        if (w->ranks[n] > 0) {
            load_ways(w, n);
        }
    }
    for (uint32_t e = 0; e < net->edges; e++) {
        blocks += w->load[e] * w->length[e];
        capacity += net->edge[e].capacity * w->length[e];
    }
    return blocks / capacity;
}

/* An edge grows by how busy it was in all rounds, beside the busiest of each. */
static void grow(struct ways *w, double step)
{
    const struct fabric_net *net = w->net;
    double most = 0, tallest = 0;

    for (uint32_t e = 0; e < net->edges; e++) {
        most = fmax(most, w->load[e] / net->edge[e].capacity);
    }
    for (uint32_t e = 0; e < net->edges; e++) {
        w->grown[e] += step * w->load[e] / net->edge[e].capacity / most;
        tallest = fmax(tallest, w->grown[e]);
    }
    for (uint32_t e = 0; e < net->edges; e++) {
        w->length[e] = exp(w->grown[e] - tallest) / net->edge[e].capacity;
    }
}

static struct ways ways_make(const struct fabric_net *net)
{
    struct ways w = {.net = net,
                     .ranks = pool_new(net->pool, net->nodes, sizeof(*w.ranks)),
                     .distance = pool_new(net->pool, net->nodes, sizeof(*w.distance)),
                     .behind = pool_new(net->pool, net->nodes, sizeof(*w.behind)),
                     .by = pool_new(net->pool, net->nodes, sizeof(*w.by)),
                     .order = pool_new(net->pool, net->nodes, sizeof(*w.order)),
                     .is_done = pool_new(net->pool, net->nodes, sizeof(*w.is_done)),
                     .load = pool_new(net->pool, net->edges, sizeof(*w.load)),
                     .length = pool_new(net->pool, net->edges, sizeof(*w.length)),
                     .grown = pool_new(net->pool, net->edges, sizeof(*w.grown))};

    for (uint32_t m = 0; m < net->placement->hosts; m++) {
        uint32_t leaf = net->edge[net->leaving[net->first[m]]].to;

        w.leaves += w.ranks[leaf] == 0;
        w.ranks[leaf] += ranks_on(net, m);
    }
    return w;
}

double fabric_bound_lengths(const struct fabric_net *net, double **lengths)
{
    struct ways w = ways_make(net);
    double switches = net->nodes - net->placement->hosts, best = 0, bound;
    double rounds = fmin(ROUNDS_MAX, EFFORT / (w.leaves * switches * switches));

    *lengths = pool_new(net->pool, net->edges, sizeof(**lengths));
    for (uint32_t m = 0; m < net->placement->hosts; m++) {
        uint32_t e = net->leaving[net->first[m]];

        bound = time_of_host(net, m) * ranks_on(net, m);
        if (bound > best) {
            memset(*lengths, 0, net->edges * sizeof(**lengths));
            (*lengths)[e] = 1;
            best = bound;
        }
    }
    for (uint32_t e = 0; e < net->edges; e++) {
        w.length[e] = 1 / net->edge[e].capacity;
    }
    for (uint32_t i = 0; i < rounds; i++) {
        bound = load_all(&w);
        if (bound > best) {
            memcpy(*lengths, w.length, net->edges * sizeof(**lengths));
            best = bound;
        }
        grow(&w, 4 / (1 + i / 4.0));
    }
    return best;
}
