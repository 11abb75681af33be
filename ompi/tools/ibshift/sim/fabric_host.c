/* The hosts' ends of the fabric: messages become packets and packets messages. */
#include "sim/fabric_private.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_ROOM = 1024 };

/* Makes room for one more element; -ENOMEM. */
static int grow(void **array, uint32_t *room, size_t size)
{
    uint32_t wanted = *room == 0 ? FIRST_ROOM : *room * 2;
    void *grown = wanted > *room ? realloc(*array, wanted * size) : NULL;

    if (grown == NULL) {
        return -ENOMEM;
    }
    *array = grown;
    *room = wanted;
    return 0;
}

/* SIM_NONE: no memory. */
uint32_t sim_packet_new(struct sim_fabric *f)
{
    uint32_t packet = f->unused_packet;

    if (packet != SIM_NONE) {
        f->unused_packet = f->packets[packet].next;
    } else {
        if (f->packet_used == f->packet_room &&
            grow((void **)&f->packets, &f->packet_room, sizeof(*f->packets)) != 0) {
            f->queue->is_broken = true;
            return SIM_NONE;
        }
        packet = f->packet_used++;
    }
    if (++f->stats.in_flight > f->stats.most) {
        f->stats.most = f->stats.in_flight;
    }
    return packet;
}

void sim_packet_drop(struct sim_fabric *f, uint32_t packet)
{
    f->packets[packet].next = f->unused_packet;
    f->unused_packet = packet;
    f->stats.in_flight--;
}

static uint32_t flow_new(struct sim_fabric *f)
{
    uint32_t flow = f->unused_flow;

    if (flow != SIM_NONE) {
        f->unused_flow = f->flows[flow].next;
        return flow;
    }
    if (f->flow_used == f->flow_room &&
        grow((void **)&f->flows, &f->flow_room, sizeof(*f->flows)) != 0) {
        return SIM_NONE;
    }
    return f->flow_used++;
}

int sim_fabric_send(struct sim_fabric *f, const struct sim_flow *flow)
{
    uint32_t port = f->graph->hosts[flow->from], index = flow_new(f), last = f->ring[port];
    struct sim_active *active;

    if (index == SIM_NONE) {
        return -ENOMEM;
    }
    active = &f->flows[index];
    *active = (struct sim_active){.user = flow->user,
                                  .left = flow->bytes,
                                  .early = flow->early,
                                  .gap = flow->gap,
                                  .due = f->queue->now,
                                  .lid = flow->lid,
                                  .sl = flow->sl,
                                  .is_other = flow->is_other,
                                  .is_serial = flow->is_serial};
    if (last == SIM_NONE) {
        active->next = index;
        f->ring[port] = index;
    } else { /* behind all that wait: the ring's place before the next to send */
        uint32_t before = f->flows[last].previous;

        active->next = last;
        active->previous = before;
        f->flows[before].next = index;
        f->flows[last].previous = index;
    }
    if (last == SIM_NONE) {
        active->previous = index;
    }
    f->stats.waiting++;
    sim_sender_try(f, port);
    return 0;
}

static void leave_ring(struct sim_fabric *f, uint32_t port, uint32_t index)
{
    struct sim_active *active = &f->flows[index];

    if (active->next == index) {
        f->ring[port] = SIM_NONE;
    } else {
        f->flows[active->previous].next = active->next;
        f->flows[active->next].previous = active->previous;
        f->ring[port] = active->next;
    }
    f->row[port] = 0;
    f->stats.waiting--;
}

/* A message keeps its turn until it has sent `burst` packets in a row. */
static void pass_turn(struct sim_fabric *f, uint32_t port, uint32_t index)
{
    if (f->ring[port] != index) { /* those before it were not due, or had no credit */
        f->ring[port] = index;
        f->row[port] = 0;
    }
    if (++f->row[port] >= f->options.burst) {
        f->ring[port] = f->flows[index].next;
        f->row[port] = 0;
    }
}

static void send_packet(struct sim_fabric *f, uint32_t port, uint32_t index, unsigned lane)
{
    struct sim_active *active = &f->flows[index];
    const struct sim_rate *rate = &f->rate[f->ports[port].rate];
    uint32_t packet = sim_packet_new(f);
    uint32_t bytes = active->left < f->options.mtu ? (uint32_t)active->left : f->options.mtu;
    struct sim_packet *p;

    if (packet == SIM_NONE) {
        return;
    }
    p = &f->packets[packet];
    active->left -= bytes;
    active->due = f->queue->now + active->gap;
    *p = (struct sim_packet){.flow = index,
                             .lid = active->lid,
                             .bytes = (uint16_t)bytes,
                             .sl = active->sl,
                             .flags = active->is_other ? SIM_PACKET_OTHER : 0};
    if (active->early > 0) {
        p->flags |= active->early <= bytes ? SIM_PACKET_EARLY : 0;
        active->early -= active->early < bytes ? active->early : bytes;
    }
    if (active->left == 0) {
        p->flags |= SIM_PACKET_LAST;
        leave_ring(f, port, index);
        if (f->user.left != NULL) {
            f->user.left(f->user.context, active->user);
        }
    } else if (!active->is_serial) {
        pass_turn(f, port, index);
    }
    sim_cable_start(f, port, packet, lane);
    sim_after_packet(f, rate, bytes, rate->sent, 0, SIM_SENT, port, SIM_NONE);
}

/* The host's next message in turn that may send: it has credit and is due. */
void sim_sender_try(struct sim_fabric *f, uint32_t port)
{
    uint32_t index = f->ring[port], first = index;
    uint64_t due = SIM_NEVER;

    if (index == SIM_NONE || f->ports[port].is_busy) {
        return;
    }
    do {
        const struct sim_active *active = &f->flows[index];
        unsigned lane = active->sl % f->options.lanes;

        if (f->credit[(size_t)port * f->options.lanes + lane] >= (int32_t)f->options.mtu) {
            if (active->due <= f->queue->now) {
                send_packet(f, port, index, lane);
                return;
            }
            due = active->due < due ? active->due : due;
        }
        index = active->next;
    } while (index != first);
    if (due < f->woken[port]) {
        f->woken[port] = due;
        sim_queue_at(f->queue, due, SIM_DUE, port, 0);
    }
}

void sim_sender_due(struct sim_fabric *f, uint32_t port, uint64_t time)
{
    if (f->woken[port] == time) {
        f->woken[port] = SIM_NEVER;
    }
    sim_sender_try(f, port);
}

void sim_delivery(struct sim_fabric *f, uint32_t packet)
{
    uint32_t index = f->packets[packet].flow, user = f->flows[index].user;
    unsigned flags = f->packets[packet].flags;

    f->stats.packets++;
    sim_packet_drop(f, packet);
    if (flags & SIM_PACKET_LAST) {
        f->flows[index].next = f->unused_flow;
        f->unused_flow = index;
    }
    if (flags & SIM_PACKET_EARLY) {
        f->user.arrived(f->user.context, user, SIM_EARLY);
    }
    if (flags & SIM_PACKET_LAST) {
        f->user.arrived(f->user.context, user, SIM_COMPLETE);
    }
}
