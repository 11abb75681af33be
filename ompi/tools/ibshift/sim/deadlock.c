/*
 * Deadlock, exactly: the least set of (cable, lane) that can still move, found by iteration from
 * those that obviously can. Everything else that packets wait for is stuck for ever.
 *
 * A (cable, lane) can move if it sends now, has credit, ends at a host, has bytes under way (its
 * credit and what is queued behind it do not add up to the buffer), or if a packet queued behind it
 * waits for one that can move.
 */
#include "sim/fabric_private.h"

#include <errno.h>
#include <stdlib.h>

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
        size_t out = index_of(v, in->first + sim_way_out(f, in, p), lane);

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
        unsigned queues = f->options.arbiter == SIM_FIFO ? 1 : ports;

        if (f->ports[i].sw == SIM_NO_SWITCH || f->ports[i].peer == SIM_NONE) {
            continue;
        }
        for (unsigned lane = 0; lane < f->options.lanes; lane++) {
            for (unsigned number = 0; number < queues; number++) {
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
    size_t all = (size_t)f->graph->port_count * f->options.lanes + 1;
    struct view v = {.f = f,
                     .moves = calloc(all, sizeof(*v.moves)),
                     .queued = calloc(all, sizeof(*v.queued)),
                     .next = calloc(all, sizeof(*v.next))};
    int rc = -ENOMEM;

    if (v.moves != NULL && v.queued != NULL && v.next != NULL) {
        rc = find_circle(&v, links, room);
    }
    free(v.moves);
    free(v.queued);
    free(v.next);
    return rc;
}
