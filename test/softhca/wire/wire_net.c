#include "wire/wire_net.h"

#include <math.h>
#include <string.h>

/* The net's events, earliest first: a binary heap of messages by their `when`. */
static void set_place(struct wire_net *net, uint32_t place, uint32_t id)
{
    net->heap[place] = id;
    net->messages[id].heap = place;
}

static bool is_before(const struct wire_net *net, uint32_t a, uint32_t b)
{
    return net->messages[a].when < net->messages[b].when;
}

static uint32_t rise(struct wire_net *net, uint32_t place, uint32_t id)
{
    while (place > 0 && is_before(net, id, net->heap[(place - 1) / 2])) {
        set_place(net, place, net->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    return place;
}

static uint32_t sink(struct wire_net *net, uint32_t place, uint32_t id)
{
    uint32_t events = net->clock->events, child;

    while ((child = 2 * place + 1) < events) {
        if (child + 1 < events && is_before(net, net->heap[child + 1], net->heap[child])) {
            child++;
        }
        if (!is_before(net, net->heap[child], id)) {
            break;
        }
        set_place(net, place, net->heap[child]);
        place = child;
    }
    return place;
}

/* Puts a message in, or where it belongs after its `when` has changed. */
static void heap_put(struct wire_net *net, uint32_t id)
{
    bool is_new = net->messages[id].heap == WIRE_NONE;
    uint32_t place = is_new ? net->clock->events++ : net->messages[id].heap;

    set_place(net, sink(net, rise(net, place, id), id), id);
}

static void heap_drop(struct wire_net *net, uint32_t id)
{
    uint32_t place = net->messages[id].heap;
    uint32_t last = net->heap[--net->clock->events];

    net->messages[id].heap = WIRE_NONE;
    if (last != id) {
        net->messages[last].heap = place;
        set_place(net, sink(net, rise(net, place, last), last), last);
    }
}

static struct wire_lane *lane_of(struct wire_net *net, const struct wire_message *m)
{
    return &net->lanes[2 * m->r.owner + m->lane];
}

static void schedule(struct wire_net *net, uint32_t id, uint64_t when)
{
    struct wire_message *m = &net->messages[id];
    bool is_sooner = m->heap == WIRE_NONE || when < m->when;

    m->when = when;
    heap_put(net, id);
    if (is_sooner && net->moved && !m->forgotten) {
        net->moved(m->r.owner, when);
    }
}

static void settle(struct wire_net *net, struct wire_message *m, uint64_t now)
{
    m->left = fmax(m->left - m->rate * (double)(now - m->since), 0);
    m->since = now;
}

/* Gives a flow the least of its links' shares from now on. */
static void share_out(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];

    settle(net, m, now);
    m->rate = m->r.limit;
    for (uint32_t h = 0; h < m->r.hops; h++) {
        const struct wire_link *l = &net->links[m->r.link[h]];

        m->rate = fmin(m->rate, l->rate / l->flows);
    }
    schedule(net, id, now + (uint64_t)ceil(m->left / m->rate));
}

static uint32_t *after_of(struct wire_net *net, uint32_t place)
{
    return &net->messages[(place - 1) / WIRE_HOPS].after[(place - 1) % WIRE_HOPS];
}

static void share_out_link(struct wire_net *net, uint32_t link, uint64_t now)
{
    uint32_t place = net->links[link].first;

    while (place) {
        share_out(net, (place - 1) / WIRE_HOPS, now);
        place = *after_of(net, place);
    }
}

static void join_link(struct wire_net *net, uint32_t id, uint32_t hop)
{
    struct wire_message *m = &net->messages[id];
    struct wire_link *l = &net->links[m->r.link[hop]];

    m->after[hop] = l->first;
    l->first = id * WIRE_HOPS + hop + 1;
    l->flows++;
    l->most = l->flows > l->most ? l->flows : l->most;
    l->bytes += (uint64_t)m->left;
}

/* Walks along the flows before it: all of them get another share next. */
static void leave_link(struct wire_net *net, uint32_t id, uint32_t hop)
{
    struct wire_message *m = &net->messages[id];
    struct wire_link *l = &net->links[m->r.link[hop]];
    uint32_t *place = &l->first;

    while (*place != id * WIRE_HOPS + hop + 1) {
        place = after_of(net, *place);
    }
    *place = m->after[hop];
    l->flows--;
}

static void put_free(struct wire_net *net, uint32_t id)
{
    net->messages[id].stage = WIRE_FREE;
    net->messages[id].next = net->clock->free;
    net->clock->free = id + 1;
}

static void begin(struct wire_net *net, uint32_t id, uint64_t now);

/* Takes the lane's first message off; the next one's turn has come. */
static void pop(struct wire_net *net, struct wire_lane *lane, uint64_t now)
{
    lane->head = net->messages[lane->head - 1].next;
    while (lane->head && net->messages[lane->head - 1].forgotten) {
        uint32_t dropped = lane->head - 1;

        lane->head = net->messages[dropped].next;
        put_free(net, dropped);
    }
    if (lane->head) {
        begin(net, lane->head - 1, now);
    } else {
        lane->tail = 0;
    }
}

static void push(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];
    struct wire_lane *lane = lane_of(net, m);

    m->next = 0;
    m->stage = WIRE_QUEUED;
    if (lane->tail) {
        net->messages[lane->tail - 1].next = id + 1;
        lane->tail = id + 1;
    } else {
        lane->head = lane->tail = id + 1;
        begin(net, id, now);
    }
}

static void arrive(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];
    struct wire_lane *lane = lane_of(net, m);

    m->stage = WIRE_LANDED;
    m->when = now + m->r.latency;
    if (net->moved && !m->forgotten) {
        net->moved(m->r.owner, m->when);
    }
    pop(net, lane, now);
    if (m->forgotten) {
        put_free(net, id);
    }
}

static uint64_t turn_bytes(const struct wire_net *net, const struct wire_message *m)
{
    return net->clock->burst && net->clock->burst < m->r.bytes ? net->clock->burst : m->r.bytes;
}

/* Sends a burst of the message, or all of it where there are no turns. */
static void flow(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];
    uint64_t bytes = turn_bytes(net, m);

    m->left = (double)bytes;
    m->r.bytes -= bytes;
    m->rate = 0;
    m->since = now;
    m->stage = WIRE_FLOWING;
    for (uint32_t h = 0; h < m->r.hops; h++) {
        join_link(net, id, h);
    }
    if (m->r.hops == 0) {
        share_out(net, id, now);
    }
    for (uint32_t h = 0; h < m->r.hops; h++) {
        share_out_link(net, m->r.link[h], now);
    }
}

static bool has_turn(const struct wire_clock *c, const struct wire_gate *gate)
{
    return !c->burst || gate->bursts == 0 || (gate->bursts + 1) * c->burst <= c->buffer;
}

/* What one queue pair sends in a row counts while another one's message waits at the gate. */
static void count_run(struct wire_net *net, struct wire_gate *gate, const struct wire_message *m)
{
    gate->run = gate->last == m->r.owner + 1 ? gate->run : 0;
    gate->run = gate->head ? gate->run + turn_bytes(net, m) : 0;
    gate->last = m->r.owner + 1;
    net->clock->longest = gate->run > net->clock->longest ? gate->run : net->clock->longest;
}

/* What an adapter sends leaves one after another: ns of a burst on its cable, or of all of it. */
static uint64_t cable_time(const struct wire_net *net, const struct wire_message *m)
{
    double rate = m->r.hops > 0 ? net->links[m->r.link[0]].rate : m->r.limit;

    return (uint64_t)((double)turn_bytes(net, m) / fmin(rate, m->r.limit));
}

/* Lets those go on whose turn has come. */
static void serve(struct wire_net *net, struct wire_gate *gate, uint64_t now)
{
    while (gate->head && has_turn(net->clock, gate)) {
        uint32_t id = gate->head - 1;

        if (net->clock->burst && gate->busy > now) {
            schedule(net, id, gate->busy);
            return;
        }
        gate->busy = now + cable_time(net, &net->messages[id]);
        gate->head = net->messages[id].turn;
        gate->bursts++;
        count_run(net, gate, &net->messages[id]);
        flow(net, id, now);
    }
}

/* Behind all others that wait for a turn at its gate. */
static void stand_in(struct wire_net *net, uint32_t id)
{
    struct wire_message *m = &net->messages[id];
    struct wire_gate *gate = &net->gates[m->r.gate];

    m->stage = WIRE_TURNING;
    m->turn = 0;
    if (gate->head) {
        net->messages[gate->tail - 1].turn = id + 1;
    } else {
        gate->head = id + 1;
    }
    gate->tail = id + 1;
}

static void end_flow(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];
    struct wire_gate *gate = &net->gates[m->r.gate];

    settle(net, m, now);
    gate->bursts--;
    for (uint32_t h = 0; h < m->r.hops; h++) {
        leave_link(net, id, h);
    }
    for (uint32_t h = 0; h < m->r.hops; h++) {
        share_out_link(net, m->r.link[h], now);
    }
    if (m->r.bytes > 0) {
        stand_in(net, id);
    } else {
        arrive(net, id, now);
    }
    serve(net, gate, now);
}

/* A READ's request has left: its bytes wait for their turn on the way back. */
static void turn_round(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];

    pop(net, lane_of(net, m), now);
    m->r.reads = false;
    m->lane = 1;
    m->r.gate = m->r.back_gate;
    m->ready = now + m->r.latency;
    push(net, id, now);
}

static void leave(struct wire_net *net, uint32_t id, uint64_t now)
{
    if (net->messages[id].r.reads) {
        turn_round(net, id, now);
    } else {
        stand_in(net, id);
        serve(net, &net->gates[net->messages[id].r.gate], now);
    }
}

/* The first of a lane: waits for its request, then for the gate. */
static void begin(struct wire_net *net, uint32_t id, uint64_t now)
{
    struct wire_message *m = &net->messages[id];
    struct wire_gate *gate;
    uint64_t start;

    if (m->ready > now) {
        m->stage = WIRE_COMING;
        schedule(net, id, m->ready);
        return;
    }
    gate = &net->gates[m->r.gate];
    start = gate->open > now ? gate->open : now;
    gate->open = start + net->clock->gap;
    m->stage = WIRE_GATED;
    schedule(net, id, start);
}

static void handle(struct wire_net *net, uint32_t id, uint64_t now)
{
    switch (net->messages[id].stage) {
    case WIRE_COMING:
        begin(net, id, now);
        break;
    case WIRE_GATED:
        leave(net, id, now);
        break;
    case WIRE_TURNING:
        serve(net, &net->gates[net->messages[id].r.gate], now);
        break;
    default:
        end_flow(net, id, now);
    }
}

/* The one that was changing the net has died: what is in flight lands now, the rest stands still
   no longer than that. All owners hear of it: it was to tell them, and they would look late or never. */
static void recover(struct wire_net *net)
{
    struct wire_clock *c = net->clock;

    c->events = c->free = 0;
    for (uint32_t i = 0; i < c->used; i++) {
        struct wire_message *m = &net->messages[i];

        for (uint32_t h = 0; h < m->r.hops && m->stage == WIRE_FLOWING; h++) {
            net->links[m->r.link[h]].flows = net->links[m->r.link[h]].first = 0;
        }
        net->gates[m->r.gate].head = net->gates[m->r.gate].tail = net->gates[m->r.gate].bursts = 0;
        net->lanes[2 * m->r.owner] = net->lanes[2 * m->r.owner + 1] = (struct wire_lane){0, 0};
        m->heap = WIRE_NONE;
        if (m->stage == WIRE_FREE || m->forgotten) {
            put_free(net, i);
        } else if (m->stage != WIRE_LANDED) {
            m->stage = WIRE_LANDED;
            m->when = c->now;
        }
        if (m->stage == WIRE_LANDED && net->moved) {
            net->moved(m->r.owner, m->when);
        }
    }
}

static void enter(struct wire_net *net)
{
    if (net->clock->busy) {
        recover(net);
    }
    net->clock->busy = 1;
}

static void catch_up(struct wire_net *net, uint64_t now)
{
    struct wire_clock *c = net->clock;

    while (c->events && net->messages[net->heap[0]].when <= now) {
        uint32_t id = net->heap[0];
        uint64_t when = net->messages[id].when;

        c->now = when > c->now ? when : c->now;
        heap_drop(net, id);
        handle(net, id, c->now);
    }
    c->now = now > c->now ? now : c->now;
}

void wire_net_advance(struct wire_net *net, uint64_t now)
{
    enter(net);
    catch_up(net, now);
    net->clock->busy = 0;
}

static uint32_t take_free(struct wire_net *net)
{
    struct wire_clock *c = net->clock;
    uint32_t id = c->free ? c->free - 1 : c->used;

    if (c->free) {
        c->free = net->messages[id].next;
    } else if (c->used < net->room) {
        c->used++;
    } else {
        return WIRE_NONE;
    }
    return id;
}

uint32_t wire_net_send(struct wire_net *net, const struct wire_request *request, uint64_t now)
{
    uint32_t id;

    enter(net);
    catch_up(net, now);
    id = take_free(net);
    if (id != WIRE_NONE) {
        struct wire_message *m = &net->messages[id];

        m->r = *request;
        m->lane = 0;
        m->heap = WIRE_NONE;
        m->forgotten = false;
        m->ready = 0;
        push(net, id, net->clock->now);
        catch_up(net, net->clock->now);
    }
    net->clock->busy = 0;
    return id;
}

bool wire_net_look(struct wire_net *net, uint32_t message, uint32_t owner, uint64_t now,
                   uint64_t *when)
{
    struct wire_message *m = &net->messages[message];
    bool is_taken, lands, waits;

    enter(net);
    catch_up(net, now);
    is_taken = m->stage == WIRE_FREE || m->r.owner != owner;
    lands = m->stage == WIRE_LANDED && !is_taken;
    waits = m->stage == WIRE_QUEUED || m->stage == WIRE_TURNING;
    *when = is_taken ? now : waits ? WIRE_NEVER : m->when;
    /* Others that wait for the end of its burst are late when nobody looks until its own. */
    if (m->stage == WIRE_FLOWING && !is_taken && !net->gates[m->r.gate].head) {
        *when +=
            (uint64_t)((double)m->r.bytes / m->r.limit); /* the least that the other bursts take */
    }
    if (lands) {
        put_free(net, message);
    }
    net->clock->busy = 0;
    return lands || is_taken;
}

void wire_net_forget(struct wire_net *net, uint32_t message, uint32_t owner)
{
    struct wire_message *m = &net->messages[message];

    enter(net);
    if (m->stage != WIRE_FREE && m->r.owner == owner) {
        m->forgotten = true;
        if (m->stage == WIRE_LANDED) {
            put_free(net, message);
        }
    }
    net->clock->busy = 0;
}
