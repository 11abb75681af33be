/* A fabric at work as a whole: making it, its figures, and whether its packets are in deadlock. */
#include "sim/fabric.h"

#include <errno.h>

#include "fabric/graph/rate.h"

static int check_options(const struct sim_fabric_options *o, struct ibshift_error *err)
{
    assert(o->mtu >= 1 && o->mtu <= SIM_MTU_MAX && o->reads >= 1 && o->reads <= 255);
    assert(o->lanes >= 1 && o->lanes <= SIM_LANES_MAX);
    if (o->buffer / o->lanes < o->mtu || o->buffer > SIM_BUFFER_MAX) {
        return ibshift_fail(err, -EINVAL,
                            "a buffer of %u bytes a port: each of the %u VL%s needs room for a "
                            "packet of %u, and %d in all are the most",
                            o->buffer, o->lanes, o->lanes == 1 ? "" : "s", o->mtu, SIM_BUFFER_MAX);
    }
    return 0;
}

static uint64_t rate_of(const struct ibshift_fabric *graph, const struct sim_fabric_options *o,
                        uint32_t port)
{
    uint32_t own = graph->ports[port].rate.mbps;

    return o->rate != 0 ? o->rate : own != 0 ? own : ibshift_rate_usual().mbps;
}

/* Each packet takes whole picoseconds. */
uint64_t sim_message_time(const struct ibshift_fabric *graph, const struct sim_fabric_options *o,
                          uint32_t port, uint64_t bytes)
{
    struct sim_rate rate = {.megabits = rate_of(graph, o, port)};

    return bytes / o->mtu * sim_bytes_time(&rate, o->mtu) + sim_bytes_time(&rate, bytes % o->mtu);
}

static int rate_class(struct sim_fabric *f, uint32_t port, struct ibshift_error *err)
{
    uint64_t megabits = rate_of(f->graph, &f->options, port);
    struct sim_rate *rate;

    for (unsigned i = 0; i < f->rates; i++) {
        if (f->rate[i].megabits == megabits) {
            return (int)i;
        }
    }
    if (f->rates == SIM_RATES_MAX) {
        return ibshift_fail(err, -EINVAL, "cables of more than %d speeds", SIM_RATES_MAX);
    }
    rate = &f->rate[f->rates];
    rate->megabits = megabits;
    rate->full = sim_bytes_time(rate, f->options.mtu);
    rate->sent = sim_queue_bucket(f->queue, SIM_SENT, rate->full);
    rate->credit = sim_queue_bucket(f->queue, SIM_CREDIT, rate->full + f->options.flight);
    rate->delivery = sim_queue_bucket(f->queue, SIM_DELIVERY, rate->full + f->options.flight);
    return (int)f->rates++;
}

static int set_ports(struct sim_fabric *f, struct ibshift_error *err)
{
    const struct ibshift_fabric *g = f->graph;

    for (uint32_t i = 0; i < g->port_count; i++) {
        const struct ibshift_node *node = &g->nodes[g->ports[i].node];
        struct sim_port *port = &f->ports[i];
        uint32_t neighbour = ibshift_port_neighbour(g, i);
        int rate = rate_class(f, i, err);

        if (rate < 0) {
            return rate;
        }
        port->rate = (uint8_t)rate;
        port->peer = g->ports[i].peer == IBSHIFT_NO_PORT ? SIM_NONE : g->ports[i].peer;
        port->first = node->first_port;
        port->ports = (uint8_t)node->port_count;
        port->number = (uint8_t)(i - node->first_port);
        port->sw = node->kind == IBSHIFT_NODE_SWITCH ? node->switch_index : SIM_NO_SWITCH;
        port->to_switch = neighbour != IBSHIFT_NO_NODE && ibshift_node_is_switch(g, neighbour);
        f->ring[i] = SIM_NONE;
        f->woken[i] = SIM_NEVER;
        for (unsigned lane = 0; lane < f->options.lanes; lane++) {
            f->credit[(size_t)i * f->options.lanes + lane] =
                port->to_switch ? (int32_t)(f->options.buffer / f->options.lanes) : INT32_MAX;
        }
    }
    return 0;
}

/* Places of each switch's queues; returns how many there are in all. */
static uint64_t lay_queues(struct sim_fabric *f)
{
    uint64_t queues = 0;

    for (uint32_t s = 0; s < f->graph->switch_count; s++) {
        const struct ibshift_node *node = &f->graph->nodes[f->graph->switches[s]];

        for (unsigned i = 0; i < node->port_count; i++) {
            f->ports[node->first_port + i].queues = queues;
            queues += (uint64_t)node->port_count * f->options.lanes;
        }
    }
    return queues;
}

static void allocate(struct sim_fabric *f)
{
    size_t ports = f->graph->port_count, switches = f->graph->switch_count, words;
    unsigned most = 1;
    uint64_t queues;

    for (uint32_t s = 0; s < switches; s++) {
        unsigned count = f->graph->nodes[f->graph->switches[s]].port_count;

        most = count > most ? count : most;
    }
    words = (most + 63) / 64;
    f->words = (int)words;
    f->ports = sim_zeroed(ports, sizeof(*f->ports));
    f->credit = sim_zeroed(ports * f->options.lanes, sizeof(*f->credit));
    f->wanted = sim_zeroed(ports * f->options.lanes * words, sizeof(*f->wanted));
    f->wants = sim_zeroed(ports * words, sizeof(*f->wants));
    f->full = sim_zeroed(switches * words, sizeof(*f->full));
    f->ring = sim_zeroed(ports, sizeof(*f->ring));
    f->woken = sim_zeroed(ports, sizeof(*f->woken));
    f->row = sim_zeroed(ports, sizeof(*f->row));
    f->bin_width = 1000;
    if (f->options.bins > 0) {
        f->bins = sim_zeroed(ports * f->options.bins, sizeof(*f->bins));
    }
    queues = lay_queues(f);
    f->queues = sim_zeroed(queues, sizeof(*f->queues));
    memset(f->queues, 0xff, queues * sizeof(*f->queues)); /* SIM_NONE */
}

int sim_fabric_create(const struct ibshift_fabric *graph, const struct sim_fabric_options *options,
                      const struct sim_fabric_user *user, struct sim_queue *queue,
                      struct sim_fabric **fabric, struct ibshift_error *err)
{
    struct sim_fabric *f;
    int rc = check_options(options, err);

    if (rc != 0) {
        return rc;
    }
    f = sim_zeroed(1, sizeof(*f));
    f->graph = graph;
    f->options = *options;
    f->user = *user;
    f->queue = queue;
    f->unused_packet = f->unused_flow = SIM_NONE;
    f->head_bucket = sim_queue_bucket(queue, SIM_HEAD, options->flight + options->routing);
    allocate(f);
    if (options->is_adaptive && sim_adaptive_open(f) != 0) {
        rc = ibshift_fail(err, -E2BIG,
                          "%u switches are too many for adaptive ones: leave out --adaptive",
                          graph->switch_count);
    }
    rc = rc == 0 ? set_ports(f, err) : rc;
    if (rc != 0) {
        sim_fabric_free(f);
        return rc;
    }
    *fabric = f;
    return 0;
}

void sim_fabric_free(struct sim_fabric *f)
{
    if (f == NULL) {
        return;
    }
    void *const all[] = {f->ports,   f->credit, f->wanted, f->wants,  f->full,  f->nearer,
                         f->steps,   f->way,    f->ring,   f->woken,  f->row,   f->bins,
                         f->packets, f->flows,  f->queues, f->recent, (void *)f};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        free(all[i]);
    }
}

/*
 * Deadlock, exactly: the least set of (cable, VL) that can still move, found by iteration from
 * those that obviously can. Everything else that packets wait for is stuck for ever.
 *
 * A (cable, VL) can move if it sends now, has credit, ends at a host, has bytes under way (its
 * credit and what is queued behind it do not add up to the buffer), or if a packet queued behind it
 * waits for one that can move.
 */

struct view {
    const struct sim_fabric *f;
    uint8_t *moves;   /* [port * lanes + lane] */
    uint32_t *queued; /* [port * lanes + lane]: bytes behind the cable */
    uint32_t *next;   /* [port * lanes + lane]: one that a packet behind it waits for */
};

static size_t index_of(const struct view *v, uint32_t port, unsigned lane)
{
    return (size_t)port * v->f->options.lanes + lane;
}

/* Every queue of every switch: each packet there holds a place behind `held`, and waits for its
 * output and for those of the packets before it. Returns whether anything new moves. */
static bool visit(struct view *v, bool count, uint32_t input, unsigned lane, unsigned number)
{
    const struct sim_fabric *f = v->f;
    const struct sim_port *in = &f->ports[input];
    uint32_t packet = sim_queue_of(f, in, lane, number)->first, blocked = SIM_NONE;
    bool is_new = false;

    for (; packet != SIM_NONE; packet = f->packets[packet].next) {
        const struct sim_packet *p = &f->packets[packet];
        size_t held = index_of(v, in->peer, p->lane_in);
        size_t out = index_of(v, in->first + p->out, lane);

        v->queued[held] += count ? p->bytes : 0;
        if (blocked == SIM_NONE && !v->moves[out]) {
            blocked = (uint32_t)out;
        }
        if (blocked != SIM_NONE) {
            v->next[held] = blocked;
        } else if (!v->moves[held]) {
            v->moves[held] = 1;
            is_new = true;
        }
    }
    return is_new;
}

static bool visit_all(struct view *v, bool count)
{
    const struct sim_fabric *f = v->f;
    bool is_new = false;

    for (uint32_t i = 0; i < f->graph->port_count; i++) {
        unsigned ports = f->graph->nodes[f->graph->ports[i].node].port_count;

        if (f->ports[i].sw == SIM_NO_SWITCH || f->ports[i].peer == SIM_NONE) {
            continue;
        }
        for (unsigned lane = 0; lane < f->options.lanes; lane++) {
            for (unsigned number = 0; number < ports; number++) {
                is_new = visit(v, count, i, lane, number) || is_new;
            }
        }
    }
    return is_new;
}

static void mark_first(struct view *v)
{
    const struct sim_fabric *f = v->f;
    uint32_t room = f->options.buffer / f->options.lanes;

    for (uint32_t i = 0; i < f->graph->port_count; i++) {
        for (unsigned lane = 0; lane < f->options.lanes; lane++) {
            size_t at = index_of(v, i, lane);
            int32_t credit = f->credit[at];

            v->moves[at] = f->ports[i].is_busy || !f->ports[i].to_switch ||
                           credit >= (int32_t)f->options.mtu ||
                           (uint32_t)credit + v->queued[at] < room;
        }
    }
}

/* From a stuck one along what its packets wait for, until it comes round. */
static int walk_circle(const struct view *v, size_t stuck, uint32_t *links, int room)
{
    size_t at = stuck;
    int count = 0;

    for (uint32_t step = 0; step < v->f->graph->port_count * v->f->options.lanes; step++) {
        at = v->next[at]; /* far enough to be on the circle */
    }
    stuck = at;
    do {
        if (count < room) {
            links[count++] = (uint32_t)(at / v->f->options.lanes);
        }
        at = v->next[at];
    } while (at != stuck);
    return count;
}

static int find_circle(struct view *v, uint32_t *links, int room)
{
    const struct sim_fabric *f = v->f;
    size_t all = (size_t)f->graph->port_count * f->options.lanes;

    visit_all(v, true);
    mark_first(v);
    while (visit_all(v, false)) {
    }
    for (size_t i = 0; i < all; i++) {
        if (!v->moves[i] && v->queued[i] > 0) {
            return walk_circle(v, i, links, room);
        }
    }
    return 0;
}

int sim_fabric_deadlock(const struct sim_fabric *f, uint32_t *links, int room)
{
    size_t all = (size_t)f->graph->port_count * f->options.lanes;
    struct view v = {.f = f,
                     .moves = sim_zeroed(all, sizeof(*v.moves)),
                     .queued = sim_zeroed(all, sizeof(*v.queued)),
                     .next = sim_zeroed(all, sizeof(*v.next))};
    int rc = find_circle(&v, links, room);

    free(v.moves);
    free(v.queued);
    free(v.next);
    return rc;
}
