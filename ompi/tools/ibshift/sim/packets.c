/* What becomes of packets in switches (queues, arbitration, credits), and the events that move them.
 */
#include "sim/fabric.h"

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

static void want(struct sim_fabric *f, const struct sim_port *in, uint32_t out, unsigned lane)
{
    sim_bit_set(wanted_by(f, out, lane), in->number);
    sim_bit_set(&f->wants[(in->first + in->number) * (size_t)f->words], f->ports[out].number);
}

/* The input has nothing to offer to the output on this VL; on another one it may have. */
static void unwant(struct sim_fabric *f, const struct sim_port *in, uint32_t out, unsigned lane)
{
    bool is_wanted = false;

    clear_bit(wanted_by(f, out, lane), in->number);
    for (unsigned i = 0; i < f->options.lanes && f->options.lanes > 1; i++) {
        is_wanted = is_wanted || sim_bit_is_set(wanted_by(f, out, i), in->number);
    }
    if (!is_wanted) {
        clear_bit(&f->wants[(in->first + in->number) * (size_t)f->words], f->ports[out].number);
    }
}

static uint32_t take_packet(struct sim_fabric *f, struct sim_port *in, uint32_t out, unsigned lane)
{
    struct sim_queue_ends *ends = sim_queue_of(f, in, lane, f->ports[out].number);
    uint32_t packet = ends->first;

    ends->first = f->packets[packet].next;
    if (ends->first == SIM_NONE) {
        unwant(f, in, out, lane);
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
        sim_bit_set(&f->full[(size_t)in->sw * f->words], in->number);
    }
    port->turn = (uint8_t)(in->number + 1);
    port->lane_turn = (uint8_t)(lane + 1);
    port->waiting--;
    sim_cable_start(f, out, packet, lane);
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

/* An output that is free takes the next packet, if there is one that may go. */
static void arbitrate(struct sim_fabric *f, uint32_t out)
{
    unsigned lane;
    int input;

    input = next_input(f, out, &lane);
    if (input >= 0) {
        forward(f, out, f->ports[out].first + (uint32_t)input, lane);
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

static void cable_is_free(struct sim_fabric *f, uint32_t out, uint32_t input)
{
    struct sim_port *in = &f->ports[input];
    bool was_full = in->reads-- == f->options.reads;

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
    uint32_t port = event->a; /* a packet, of SIM_HEAD and SIM_READY */

    switch (kind) {
    case SIM_HEAD:
    case SIM_READY:
        head_arrives(f, event->a, event->b, kind == SIM_READY);
        return;
    case SIM_SENT:
        f->ports[port].is_busy = 0;
        if (event->b != SIM_NONE) {
            cable_is_free(f, port, event->b);
            return;
        }
        break;
    case SIM_CREDIT:
        f->credit[(size_t)port * f->options.lanes + (event->b >> 16)] +=
            (int32_t)(event->b & 0xffff);
        if (f->ports[port].is_busy) {
            return;
        }
        if (f->ports[port].sw != SIM_NO_SWITCH) {
            arbitrate(f, port);
            return;
        }
        break;
    default:
        break;
    }
    sim_host_event(f, kind, event);
}
