/* Packets at work: what becomes of them in switches (queues, arbitration, cables, credits), how hosts
 * cut messages into packets, and the events that move both. */
#include "sim/fabric_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void set_bit(uint64_t *mask, unsigned bit)
{
    mask[bit / 64] |= 1ull << bit % 64;
}

static void clear_bit(uint64_t *mask, unsigned bit)
{
    mask[bit / 64] &= ~(1ull << bit % 64);
}

/* The first bit of one mask that the other has not, from `from` on and then around; -1: none. */
static int pick(const uint64_t *mask, const uint64_t *without, int words, unsigned from)
{
    int word = (int)from / 64;
    uint64_t rest = mask[word] & ~without[word], high = rest & ~0ull << from % 64;

    if (high != 0) {
        return word * 64 + __builtin_ctzll(high);
    }
    for (int i = 1; i < words; i++) {
        int at = (word + i) % words;
        uint64_t some = mask[at] & ~without[at];

        if (some != 0) {
            return at * 64 + __builtin_ctzll(some);
        }
    }
    return rest != 0 ? word * 64 + __builtin_ctzll(rest) : -1;
}

static uint64_t *wanted_by(const struct sim_fabric *f, uint32_t out, unsigned lane)
{
    return &f->wanted[((size_t)out * f->options.lanes + lane) * f->words];
}

/* Puts a packet on the cable out of a port. */
static void keep_use(struct sim_fabric *f, uint32_t port, uint64_t length)
{
    uint64_t bin = f->queue->now / f->bin_width;

    while (bin >= f->bin_count) { /* bins become twice as wide */
        for (size_t i = 0; i < (size_t)f->graph->port_count * f->bin_count; i += f->bin_count) {
            for (uint32_t k = 0; k < f->bin_count; k++) {
                uint64_t *bins = &f->bins[i];

                bins[k] = 2 * k + 1 < f->bin_count ? bins[2 * k] + bins[2 * k + 1] : 0;
            }
        }
        f->bin_width *= 2;
        bin /= 2;
    }
    f->bins[(size_t)port * f->bin_count + bin] += length;
}

/* A host that takes packets one after the other: until then they hold their places in its buffer. */
static void host_takes(struct sim_fabric *f, uint32_t port, uint32_t packet, unsigned lane,
                       uint64_t length)
{
    uint32_t host = f->ports[port].peer, bytes = f->packets[packet].bytes;
    uint64_t come = f->queue->now + length + f->options.flight, *taken = &f->taken[host];

    *taken = (*taken > come ? *taken : come) + bytes * 8000000ull / f->options.intake;
    f->credit[(size_t)port * f->options.lanes + lane] -= (int32_t)bytes;
    sim_queue_at(f->queue, *taken, SIM_DELIVERY, packet, host);
    sim_queue_at(f->queue, *taken + f->options.flight, SIM_CREDIT, port, bytes | lane << 16);
}

static void cable_start(struct sim_fabric *f, uint32_t port, uint32_t packet, unsigned lane)
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
    } else if (f->options.intake > 0) {
        host_takes(f, port, packet, lane, length);
    } else {
        sim_after_packet(f, rate, p->bytes, rate->delivery, f->options.flight, SIM_DELIVERY, packet,
                         out->peer);
    }
}

static void want(struct sim_fabric *f, const struct sim_port *in, uint32_t out, unsigned lane)
{
    set_bit(wanted_by(f, out, lane), in->number);
    set_bit(&f->wants[(in->first + in->number) * (size_t)f->words], f->ports[out].number);
}

/* The input has nothing to offer to the output on this VL; on another one it may have. */
static void unwant(struct sim_fabric *f, const struct sim_port *in, uint32_t out, unsigned lane)
{
    bool is_wanted = false;

    clear_bit(wanted_by(f, out, lane), in->number);
    for (unsigned i = 0; i < f->options.lanes && f->options.lanes > 1; i++) {
        const uint64_t *mask = wanted_by(f, out, i);

        is_wanted = is_wanted || (mask[in->number / 64] >> in->number % 64 & 1) != 0;
    }
    if (!is_wanted) {
        clear_bit(&f->wants[(in->first + in->number) * (size_t)f->words], f->ports[out].number);
    }
}

static uint32_t take_packet(struct sim_fabric *f, struct sim_port *in, uint32_t out, unsigned lane)
{
    struct sim_queue_ends *ends = sim_queue_of(f, in, lane, f->ports[out].number);
    uint32_t packet = ends->first;
    uint32_t next = f->packets[packet].next;
    unsigned number = f->ports[out].number, then = number;

    ends->first = next;
    if (next != SIM_NONE && f->options.arbiter == SIM_FIFO) {
        then = f->packets[next].out;
    }
    if (next == SIM_NONE || then != number) {
        unwant(f, in, out, lane);
    }
    if (next != SIM_NONE && then != number) {
        want(f, in, in->first + then, lane);
    }
    return packet;
}

/* From an input's queue onto the cable. The place in the buffer is free when the tail has left, and
 * known to be so a flight later. */
static void forward(struct sim_fabric *f, uint32_t out, uint32_t input, unsigned lane)
{
    struct sim_port *in = &f->ports[input], *port = &f->ports[out];
    uint32_t packet = take_packet(f, in, out, lane);
    const struct sim_rate *rate = &f->rate[port->rate];
    uint32_t bytes = f->packets[packet].bytes, lane_in = f->packets[packet].lane_in;

    if (++in->reads == f->options.reads) {
        set_bit(&f->full[(size_t)in->sw * f->words], in->number);
    }
    port->turn = (uint8_t)(in->number + 1);
    port->lane_turn = (uint8_t)(lane + 1);
    port->waiting--;
    cable_start(f, out, packet, lane);
    sim_after_packet(f, rate, bytes, rate->sent, 0, SIM_SENT, out, input);
    sim_after_packet(f, rate, bytes, rate->credit, f->options.flight, SIM_CREDIT, in->peer,
                     bytes | lane_in << 16);
}

/* The input from which the output can take a packet now, and its VL; -1: none. */
static int next_input(const struct sim_fabric *f, uint32_t out, unsigned *lane)
{
    const struct sim_port *port = &f->ports[out];
    unsigned lanes = f->options.lanes;

    for (unsigned i = 0; i < lanes && !port->is_busy; i++) {
        int input;

        *lane = (port->lane_turn + i) % lanes;
        if (f->credit[(size_t)out * lanes + *lane] < (int32_t)f->options.mtu) {
            continue;
        }
        input = pick(wanted_by(f, out, *lane), &f->full[(size_t)port->sw * f->words], f->words,
                     port->turn < port->ports ? port->turn : 0);
        if (input >= 0) {
            return input;
        }
    }
    return -1;
}

static void match_soon(struct sim_fabric *f, uint32_t port)
{
    uint64_t *slot = &f->slot[f->ports[port].sw], length = f->slot_length;

    if (*slot == SIM_NEVER) {
        *slot = (f->queue->now + length - 1) / length * length;
        sim_queue_at(f->queue, *slot, SIM_SLOT, port, 0);
    }
}

static void offer_input(struct sim_fabric *f, uint32_t input);

/* An output that is free takes the next packet, if there is one that may go. */
static void arbitrate(struct sim_fabric *f, uint32_t out)
{
    unsigned lane;
    int input;

    if (f->options.arbiter == SIM_MATCH) {
        match_soon(f, out);
        return;
    }
    input = next_input(f, out, &lane);
    if (input >= 0) {
        uint32_t port = f->ports[out].first + (uint32_t)input;

        forward(f, out, port, lane);
        if (f->options.arbiter == SIM_FIFO) { /* who was behind it may have a free output */
            offer_input(f, port);
        }
    }
}

/* How far the output is from the one that is next for the input. */
static unsigned places_on(const struct sim_port *in, unsigned number)
{
    return (number + in->ports - in->read_turn % in->ports) % in->ports;
}

/* What iSLIP does: turns move on by the matches of the first iteration only, so that nobody
 * starves. */
static void accept(struct sim_fabric *f, uint32_t out, uint32_t input, unsigned lane, bool is_first)
{
    struct sim_port *port = &f->ports[out], before = *port;

    forward(f, out, input, lane);
    if (is_first) {
        f->ports[input].read_turn = (uint8_t)(port->number + 1);
    } else {
        port->turn = before.turn;
        port->lane_turn = before.lane_turn;
    }
}

/* One iteration: every output that can grants to an input, every input accepts one grant. */
static bool match_once(struct sim_fabric *f, uint32_t first, unsigned ports, bool is_first)
{
    int16_t granted[256]; /* to each input: by which output */
    uint8_t lanes[256];   /* of each output's grant */
    bool is_new = false;

    memset(granted, 0xff, sizeof(granted)); /* -1 */
    for (unsigned number = 0; number < ports; number++) {
        unsigned lane;
        int input = next_input(f, first + number, &lane);

        if (input >= 0) {
            const struct sim_port *in = &f->ports[first + (uint32_t)input];
            int other = granted[input];

            lanes[number] = (uint8_t)lane;
            if (other < 0 || places_on(in, number) < places_on(in, (unsigned)other)) {
                granted[input] = (int16_t)number;
            }
        }
    }
    for (unsigned number = 0; number < ports; number++) {
        if (granted[number] >= 0) {
            unsigned out = (unsigned)granted[number];

            accept(f, first + out, first + number, lanes[out], is_first);
            is_new = true;
        }
    }
    return is_new;
}

static void match(struct sim_fabric *f, uint32_t port)
{
    uint32_t first = f->ports[port].first;
    unsigned ports = f->ports[port].ports;

    f->slot[f->ports[port].sw] = SIM_NEVER;
    if (match_once(f, first, ports, true)) {
        while (match_once(f, first, ports, false)) {
        }
    }
}

/* On which the packet leaves through the switch's port out. */
static uint8_t lane_of(const struct sim_fabric *f, const struct sim_port *in,
                       const struct sim_packet *p, unsigned out)
{
    const struct fabric_sl2vl *t = f->options.sl2vl;

    if (t != NULL) { /* ports are numbered from 1 there */
        return t->vl[fabric_sl2vl_at(f->graph, t, in->sw, in->number + 1u, out + 1, p->sl)];
    }
    return f->options.lane_table != NULL
               ? f->options.lane_table[(size_t)in->sw * f->graph->lft_stride + p->lid]
               : (uint8_t)(p->sl % f->options.lanes);
}

static void head_arrives(struct sim_fabric *f, uint32_t packet, uint32_t port, bool is_ready)
{
    struct sim_packet *p = &f->packets[packet];
    struct sim_port *in = &f->ports[port];
    unsigned fixed = ibshift_lft_get(f->graph, in->sw, p->lid) - 1u;
    unsigned number = f->nearer != NULL ? sim_adaptive_out(f, in, p, fixed) : fixed;
    uint32_t out = in->first + number;
    unsigned from = f->ports[in->peer].rate, to = f->ports[out].rate;
    struct sim_queue_ends *ends;

    if (from != to && !is_ready) {
        uint64_t slow = sim_time_of(f, &f->rate[from], p->bytes);
        uint64_t fast = sim_time_of(f, &f->rate[to], p->bytes);

        if (slow > fast) { /* its tail must have come when it is due to leave */
            sim_queue_at(f->queue, f->queue->now + slow - fast, SIM_READY, packet, port);
            return;
        }
    }
    p->lane = lane_of(f, in, p, number);
    p->next = SIM_NONE;
    p->out = (uint8_t)number;
    f->ports[out].waiting++;
    ends = sim_queue_of(f, in, p->lane, number);
    if (ends->first != SIM_NONE) {
        f->packets[ends->last].next = packet;
        ends->last = packet;
        return; /* the output knows of this input */
    }
    ends->first = ends->last = packet;
    want(f, in, out, p->lane);
    arbitrate(f, out);
}

/* An input that had all its reads under way: outputs that it kept waiting may have one now. */
static void offer_input(struct sim_fabric *f, uint32_t input)
{
    static const uint64_t none[4];
    struct sim_port *in = &f->ports[input];
    const uint64_t *wants = &f->wants[(size_t)input * f->words];
    unsigned ports = in->ports;
    unsigned from = in->read_turn < ports ? in->read_turn : 0;

    for (unsigned tried = 0; tried < ports && in->reads < f->options.reads;) {
        int out = pick(wants, none, f->words, from);
        unsigned step;

        if (out < 0) {
            return;
        }
        step = ((unsigned)out + ports - from) % ports + 1;
        tried += step;
        from = ((unsigned)out + 1) % ports;
        if (tried <= ports && !f->ports[in->first + (uint32_t)out].is_busy) {
            arbitrate(f, in->first + (uint32_t)out);
            in->read_turn = (uint8_t)from;
        }
    }
}

/* The hosts' ends of the fabric: messages become packets and packets messages. */

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
static uint32_t packet_new(struct sim_fabric *f)
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

        if (grow((void **)&f->flows, &f->flow_room, sizeof(*f->flows)) != 0 ||
            (f->steps != NULL && grow((void **)&f->way, &room, f->way_length) != 0)) {
            return SIM_NONE;
        }
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
                             .sl = active->sl & 15,
                             .flags = active->is_other ? SIM_PACKET_OTHER : 0};
    if (active->early > 0) {
        p->flags |= active->early <= bytes ? SIM_PACKET_EARLY : 0;
        active->early -= active->early < bytes ? active->early : bytes;
    }
    if (active->left == 0) {
        leave_ring(f, port, index);
        if (f->user.left != NULL) {
            f->user.left(f->user.context, active->user);
        }
    } else if (!active->is_serial) {
        pass_turn(f, port, index);
    }
    cable_start(f, port, packet, lane);
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

static void sender_due(struct sim_fabric *f, uint32_t port, uint64_t time)
{
    if (f->woken[port] == time) {
        f->woken[port] = SIM_NEVER;
    }
    sender_try(f, port);
}

static void deliver(struct sim_fabric *f, uint32_t packet)
{
    uint32_t index = f->packets[packet].flow, user = f->flows[index].user;
    unsigned flags = f->packets[packet].flags;
    bool is_last = (f->flows[index].coming -= f->packets[packet].bytes) == 0;

    f->stats.packets++;
    packet_drop(f, packet);
    if (is_last) {
        f->flows[index].next = f->unused_flow;
        f->unused_flow = index;
    }
    if (flags & SIM_PACKET_EARLY) {
        f->user.arrived(f->user.context, user, SIM_EARLY);
    }
    if (is_last) {
        f->user.arrived(f->user.context, user, SIM_COMPLETE);
    }
}

int sim_fabric_send(struct sim_fabric *f, const struct sim_flow *flow)
{
    uint32_t port = f->graph->hosts[flow->from], index = flow_new(f), last = f->ring[port];
    struct sim_active *active;

    if (index == SIM_NONE) {
        return -ENOMEM;
    }
    if (f->steps != NULL) {
        memset(&f->way[(size_t)index * f->way_length], SIM_NO_WAY, f->way_length);
    }
    active = &f->flows[index];
    *active = (struct sim_active){.user = flow->user,
                                  .left = flow->bytes,
                                  .coming = flow->bytes,
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
    sender_try(f, port);
    return 0;
}

static void cable_is_free(struct sim_fabric *f, uint32_t out, uint32_t input)
{
    struct sim_port *in;
    bool was_full;

    f->ports[out].is_busy = 0;
    if (input == SIM_NONE) {
        sender_try(f, out);
        return;
    }
    in = &f->ports[input];
    was_full = in->reads-- == f->options.reads;
    if (was_full) {
        clear_bit(&f->full[(size_t)in->sw * f->words], in->number);
    }
    arbitrate(f, out);
    if (was_full) {
        offer_input(f, input);
    }
}

void sim_fabric_event(struct sim_fabric *f, int kind, const struct sim_event *event)
{
    switch (kind) {
    case SIM_HEAD:
        head_arrives(f, event->a, event->b, false);
        break;
    case SIM_READY:
        head_arrives(f, event->a, event->b, true);
        break;
    case SIM_SENT:
        cable_is_free(f, event->a, event->b);
        break;
    case SIM_CREDIT:
        f->credit[(size_t)event->a * f->options.lanes + (event->b >> 16)] +=
            (int32_t)(event->b & 0xffff);
        if (f->ports[event->a].is_busy) {
            break;
        }
        if (f->ports[event->a].sw == SIM_NO_SWITCH) {
            sender_try(f, event->a);
        } else {
            arbitrate(f, event->a);
        }
        break;
    case SIM_DELIVERY:
        deliver(f, event->a);
        break;
    case SIM_SLOT:
        match(f, event->a);
        break;
    default:
        sender_due(f, event->a, event->time);
    }
}
