/* The hosts' ends of the fabric: messages become packets and packets messages. */
#include "sim/fabric.h"

/* That the cable out of a port is busy from now on. */
static void keep_use(struct sim_fabric *f, uint32_t port, uint64_t length)
{
    uint64_t bin = f->queue->now / f->bin_width;

    while (bin >= f->options.bins) { /* bins become twice as wide */
        for (size_t i = 0; i < (size_t)f->graph->port_count * f->options.bins;
             i += f->options.bins) {
            for (uint32_t k = 0; k < f->options.bins; k++) {
                uint64_t *bins = &f->bins[i];

                bins[k] = 2 * k + 1 < f->options.bins ? bins[2 * k] + bins[2 * k + 1] : 0;
            }
        }
        f->bin_width *= 2;
        bin /= 2;
    }
    f->bins[(size_t)port * f->options.bins + bin] += length;
}

void sim_cable_start(struct sim_fabric *f, uint32_t port, uint32_t packet, unsigned lane)
{
    struct sim_port *out = &f->ports[port];
    struct sim_packet *p = &f->packets[packet];
    const struct sim_rate *rate = &f->rate[out->rate];
    uint64_t length = sim_time_of(f, rate, p->bytes);

    out->is_busy = 1;
    out->busy[(p->flags & SIM_PACKET_OTHER) != 0] += length;
    f->stats.hops++;
    p->lane_in = (uint8_t)lane;
    if (f->bins != NULL) {
        keep_use(f, port, length);
    }
    if (out->to_switch) {
        f->credit[(size_t)port * f->options.lanes + lane] -= p->bytes;
        sim_queue_after(f->queue, f->head_bucket, packet, out->peer);
    } else {
        sim_after_packet(f, rate, p->bytes, rate->delivery, f->options.flight, SIM_DELIVERY, packet,
                         out->peer);
    }
}

static uint32_t packet_new(struct sim_fabric *f)
{
    uint32_t packet = f->unused_packet;

    if (packet != SIM_NONE) {
        f->unused_packet = f->packets[packet].next;
    } else {
        packet = f->packet_used++;
        if (packet == f->packet_room) {
            f->packets = sim_grown(f->packets, &f->packet_room, sizeof(*f->packets));
        }
    }
    if (++f->stats.in_flight > f->stats.most) {
        f->stats.most = f->stats.in_flight;
    }
    return packet;
}

static void packet_drop(struct sim_fabric *f, uint32_t packet)
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
    if (f->flow_used == f->flow_room) {
        uint32_t room = f->flow_room;

        f->flows = sim_grown(f->flows, &f->flow_room, sizeof(*f->flows));
        f->way = f->steps != NULL ? sim_grown(f->way, &room, f->way_length) : NULL;
    }
    return f->flow_used++;
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
    uint32_t packet = packet_new(f);
    uint32_t bytes = active->left < f->options.mtu ? (uint32_t)active->left : f->options.mtu;
    struct sim_packet *p = &f->packets[packet];

    active->left -= bytes;
    active->due = f->queue->now + active->gap;
    *p = (struct sim_packet){.flow = index,
                             .lid = active->lid,
                             .bytes = (uint16_t)bytes,
                             .sl = active->sl & 15,
                             .flags = active->is_other ? SIM_PACKET_OTHER : 0};
    if (active->left == 0) {
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
static void sender_try(struct sim_fabric *f, uint32_t port)
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

static void deliver(struct sim_fabric *f, uint32_t packet)
{
    uint32_t index = f->packets[packet].flow, user = f->flows[index].user;
    bool is_last = (f->flows[index].coming -= f->packets[packet].bytes) == 0;

    f->stats.packets++;
    packet_drop(f, packet);
    if (is_last) {
        f->flows[index].next = f->unused_flow;
        f->unused_flow = index;
        f->user.arrived(f->user.context, user);
    }
}

void sim_fabric_send(struct sim_fabric *f, const struct sim_flow *flow)
{
    uint32_t port = f->graph->hosts[flow->from], index = flow_new(f), first = f->ring[port];
    struct sim_active *active = &f->flows[index];

    if (f->steps != NULL) {
        memset(&f->way[(size_t)index * f->way_length], SIM_NO_WAY, f->way_length);
    }
    *active = (struct sim_active){.user = flow->user,
                                  .left = flow->bytes,
                                  .coming = flow->bytes,
                                  .gap = flow->gap,
                                  .due = f->queue->now,
                                  .from = flow->from,
                                  .lid = flow->lid,
                                  .sl = flow->sl,
                                  .is_other = flow->is_other,
                                  .is_serial = flow->is_serial};
    if (first == SIM_NONE) {
        active->next = active->previous = f->ring[port] = index;
    } else { /* behind all that wait: the ring's place before the next to send */
        active->next = first;
        active->previous = f->flows[first].previous;
        f->flows[active->previous].next = f->flows[first].previous = index;
    }
    f->stats.waiting++;
    sender_try(f, port);
}

void sim_host_event(struct sim_fabric *f, int kind, const struct sim_event *event)
{
    if (kind == SIM_DELIVERY) {
        deliver(f, event->a);
        return;
    }
    if (kind == SIM_DUE && f->woken[event->a] == event->time) {
        f->woken[event->a] = SIM_NEVER;
    }
    sender_try(f, event->a);
}
