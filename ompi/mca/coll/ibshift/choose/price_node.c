/* What one simulated rank does with its processor. */
#include "choose/price_node.h"

#include <math.h>

#include "choose/burst.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

double ibshift_port_take(const struct ibshift_simulation *sim, struct ibshift_port *port,
                         double now, uint64_t bytes, double *end)
{
    double drain = bytes > 1 ? (double)(bytes - 1) * sim->model.gap_byte : 0;
    double begin = later(now, port->turn - (sim->model.free_messages - 1) * sim->model.gap);
    double leaves = later(begin, port->wire);

    port->turn = later(port->turn, begin) + sim->model.gap + drain;
    port->gaps += sim->model.gap;
    port->bytes += drain;
    port->wire = leaves + drain;
    *end = port->wire;
    return leaves;
}

void ibshift_node_acknowledge(struct ibshift_simulation *sim, uint32_t rank, double now)
{
    struct ibshift_node *node = &sim->nodes[rank];
    struct ibshift_unacked *ring = &sim->unacked[(size_t)rank * sim->slots];

    while (node->unacked_count > 0 && ring[node->unacked_first].done <= now) {
        ibshift_walk_complete(&sim->walk, IBSHIFT_CLASS_SEND, ring[node->unacked_first].flight);
        node->unacked_first = (node->unacked_first + 1) % sim->slots;
        node->unacked_count--;
    }
}

static double burst_overhead(struct ibshift_simulation *sim, uint32_t rank, bool is_send,
                             uint32_t round, uint32_t index)
{
    struct ibshift_node *node = &sim->nodes[rank];
    struct ibshift_burst *burst = is_send ? &node->sends : &node->recvs;
    const struct ibshift_price_request *r = sim->request;
    const struct ibshift_model *m = &sim->model;
    double max = is_send ? m->send_max : m->recv_max, min = is_send ? m->send_min : m->recv_min;

    if (max == min) {
        return max;
    }
    if (burst->left == 0) {
        burst->left = is_send ? ibshift_burst_sends(r->alg, r->plan, rank, round, index)
                              : ibshift_burst_recvs(r->alg, r->plan, rank, round, index);
        burst->overhead = min + (max - min) / burst->left;
    }
    burst->left--;
    return burst->overhead;
}

static void report(const struct ibshift_simulation *sim, const struct ibshift_price_event *event)
{
    if (sim->request->seen != NULL) {
        sim->request->seen(sim->request->context, event);
    }
}

static void work(struct ibshift_node *node, double begin, double time)
{
    node->clock = begin + time;
    node->worked += time;
    node->finish = later(node->finish, node->clock);
    node->was_busy = true;
}

static void do_local(struct ibshift_simulation *sim, uint32_t rank, struct ibshift_step step)
{
    struct ibshift_node *node = &sim->nodes[rank];
    double rate = step.kind == IBSHIFT_STEP_COPY ? sim->model.copy_byte : sim->model.reduce_byte;
    struct ibshift_price_event event = {.rank = rank, .step = &step, .begin = node->clock};

    event.bytes = ibshift_sizes_step(&sim->sizes, rank, &step);
    work(node, node->clock, (double)event.bytes * rate);
    event.end = node->clock;
    event.round = sim->walk.cursor[IBSHIFT_CLASS_LOCAL].round;
    ibshift_walk_start(&sim->walk, IBSHIFT_CLASS_LOCAL);
    report(sim, &event);
}

/* In order of their ends: a send that had to wait for its grant may end after a later one. */
static void hold_until_acknowledged(struct ibshift_simulation *sim, uint32_t rank, uint32_t round,
                                    uint32_t flight, double done)
{
    struct ibshift_node *node = &sim->nodes[rank];
    struct ibshift_unacked *ring = &sim->unacked[(size_t)rank * sim->slots];
    uint32_t place = node->unacked_count++, at = (node->unacked_first + place) % sim->slots;

    for (; place > 0; place--) {
        uint32_t before = (node->unacked_first + place - 1) % sim->slots;

        if (ring[before].done <= done) {
            break;
        }
        ring[at] = ring[before];
        at = before;
    }
    ring[at] = (struct ibshift_unacked){done, round, flight};
}

void ibshift_node_acknowledged(struct ibshift_simulation *sim, uint32_t rank, uint32_t round,
                               double done)
{
    struct ibshift_node *node = &sim->nodes[rank];
    struct ibshift_unacked *ring = &sim->unacked[(size_t)rank * sim->slots];
    uint32_t place = 0, flight;

    while (ring[(node->unacked_first + place) % sim->slots].round != round ||
           isfinite(ring[(node->unacked_first + place) % sim->slots].done)) {
        place++;
    }
    flight = ring[(node->unacked_first + place) % sim->slots].flight;
    for (node->unacked_count--; place < node->unacked_count; place++) {
        ring[(node->unacked_first + place) % sim->slots] =
            ring[(node->unacked_first + place + 1) % sim->slots];
    }
    hold_until_acknowledged(sim, rank, round, flight, done);
    node->finish = later(node->finish, done);
    sim->error =
        ibshift_heap_push(&sim->heap, (struct ibshift_event){done, 0, rank, IBSHIFT_NO_MESSAGE});
}

static void report_send(const struct ibshift_simulation *sim,
                        const struct ibshift_price_message *message, double leaves)
{
    const struct ibshift_price_request *r = sim->request;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    if (r->seen == NULL) {
        return;
    }
    r->alg->emit(r->plan, message->from, message->round, steps);
    report(sim, &(struct ibshift_price_event){.rank = message->from,
                                              .round = message->round,
                                              .step = &steps[message->index],
                                              .begin = message->begin,
                                              .end = message->end,
                                              .leaves = leaves,
                                              .arrives = leaves + sim->model.latency,
                                              .bytes = message->bytes});
}

void ibshift_node_leave(struct ibshift_simulation *sim, int32_t index, double begin,
                        double earliest)
{
    const struct ibshift_price_message *message = &sim->messages[index];
    struct ibshift_node *node = &sim->nodes[message->from];
    double end, leaves;

    node->out.wire = later(node->out.wire, earliest);
    leaves = ibshift_port_take(sim, &node->out, begin, message->bytes, &end);
    report_send(sim, message, leaves);
    sim->error = ibshift_heap_push(
        &sim->heap, (struct ibshift_event){leaves + sim->model.latency, 0, message->to, index});
    if (ibshift_needs_grant(sim, message->bytes)) {
        hold_until_acknowledged(sim, message->from, message->round, message->flight, INFINITY);
    } else if (sim->model.at_once == 0) {
        hold_until_acknowledged(sim, message->from, message->round, message->flight,
                                end + 2 * sim->model.latency);
    } else {
        ibshift_walk_complete(&sim->walk, IBSHIFT_CLASS_SEND, message->flight);
    }
}

/* begin is when the port has a turn for it. */
static void do_send(struct ibshift_simulation *sim, uint32_t rank, struct ibshift_step step,
                    uint64_t bytes, double begin)
{
    struct ibshift_node *node = &sim->nodes[rank];
    uint32_t index = sim->walk.cursor[IBSHIFT_CLASS_SEND].index;
    uint32_t round = sim->walk.cursor[IBSHIFT_CLASS_SEND].round;
    uint32_t flight = ibshift_walk_start(&sim->walk, IBSHIFT_CLASS_SEND);
    double time =
        burst_overhead(sim, rank, true, round, index) + (double)bytes * sim->model.send_byte;
    int32_t at;

    if ((sim->error = ibshift_messages_take(sim, &at)) != 0) {
        return;
    }
    sim->messages[at] = (struct ibshift_price_message){.begin = begin,
                                                       .end = begin + time,
                                                       .bytes = bytes,
                                                       .from = rank,
                                                       .to = step.peer,
                                                       .key = ibshift_step_key(&step),
                                                       .round = round,
                                                       .index = index,
                                                       .flight = flight};
    work(node, begin, time);
    node->sent++;
    sim->message_total++;
    sim->byte_total += bytes;
    if (!ibshift_needs_grant(sim, bytes) || ibshift_grant_ask(sim, rank, at)) {
        ibshift_node_leave(sim, at, begin, begin + time);
    }
}

static void report_recv(struct ibshift_simulation *sim, uint32_t rank,
                        const struct ibshift_price_message *message, double begin)
{
    const struct ibshift_price_request *r = sim->request;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    if (r->seen == NULL) {
        return;
    }
    r->alg->emit(r->plan, rank, message->round, steps);
    report(sim, &(struct ibshift_price_event){.rank = rank,
                                              .round = message->round,
                                              .step = &steps[message->index],
                                              .begin = begin,
                                              .end = sim->nodes[rank].clock,
                                              .ready = message->ready,
                                              .bytes = message->bytes});
}

static void do_recv(struct ibshift_simulation *sim, uint32_t rank)
{
    struct ibshift_node *node = &sim->nodes[rank];
    int32_t at = node->arrived;
    struct ibshift_price_message message = sim->messages[at];
    double begin = later(node->clock, message.ready);

    node->arrived = message.next;
    ibshift_messages_give(sim, at);
    work(node, begin, burst_overhead(sim, rank, false, message.round, message.index));
    report_recv(sim, rank, &message, begin);
    ibshift_walk_complete(&sim->walk, IBSHIFT_CLASS_RECV, message.flight);
}

/* When an acknowledgement comes that a step waits for, or infinity. */
static double awaited_acknowledgement(const struct ibshift_simulation *sim, uint32_t rank)
{
    const struct ibshift_node *node = &sim->nodes[rank];
    const struct ibshift_walk *walk = &sim->walk;

    if (node->unacked_count == 0) {
        return INFINITY;
    }
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        const struct ibshift_cursor *cursor = &walk->cursor[class];
        bool is_full = class == IBSHIFT_CLASS_SEND && walk->in_flight[class] == walk->window;

        if (cursor->has_step && (is_full || cursor->step.drain > walk->progress.sent)) {
            return sim->unacked[(size_t)rank * sim->slots + node->unacked_first].done;
        }
    }
    return INFINITY;
}

static void sleep_until(struct ibshift_simulation *sim, uint32_t rank, double time)
{
    struct ibshift_node *node = &sim->nodes[rank];

    if (!node->is_asleep || time < node->wake) {
        node->is_asleep = true;
        node->wake = time;
        sim->error = ibshift_heap_push(&sim->heap,
                                       (struct ibshift_event){time, 0, rank, IBSHIFT_NO_MESSAGE});
    }
}

/* The next thing that the rank does; false when it must wait for an event. */
static bool act(struct ibshift_simulation *sim, uint32_t rank)
{
    struct ibshift_node *node = &sim->nodes[rank];
    const struct ibshift_step *step;
    double send_at = INFINITY, recv_at = INFINITY, other_at;
    uint64_t bytes = 0;

    if ((step = ibshift_walk_next(&sim->walk, IBSHIFT_CLASS_LOCAL)) != NULL) {
        do_local(sim, rank, *step);
        return true;
    }
    if ((step = ibshift_walk_next(&sim->walk, IBSHIFT_CLASS_SEND)) != NULL) {
        bytes = ibshift_sizes_step(&sim->sizes, rank, step);
        if (bytes == 0 && step->count > 0) {
            ibshift_walk_skip(&sim->walk, IBSHIFT_CLASS_SEND);
            return true;
        }
        send_at =
            later(node->clock, node->out.turn - (sim->model.free_messages - 1) * sim->model.gap);
    }
    if (node->arrived != IBSHIFT_NO_MESSAGE) {
        recv_at = later(node->clock, sim->messages[node->arrived].ready);
    }
    other_at = awaited_acknowledgement(sim, rank);
    if (send_at <= node->clock || (send_at <= recv_at && isfinite(recv_at))) {
        do_send(sim, rank, *step, bytes, send_at);
        return true;
    }
    if (isfinite(recv_at) && recv_at <= other_at) {
        do_recv(sim, rank);
        return true;
    }
    other_at = other_at < send_at ? other_at : send_at;
    if (isfinite(recv_at)) {
        node->clock = later(node->clock, other_at);
        return true;
    }
    if (isfinite(other_at)) {
        sleep_until(sim, rank, other_at);
    }
    return false;
}

static void go_on(struct ibshift_simulation *sim, uint32_t rank)
{
    do {
        ibshift_node_acknowledge(sim, rank, sim->nodes[rank].clock);
        ibshift_node_post(sim, rank);
    } while (sim->error == 0 && act(sim, rank));
    ibshift_walk_mark(&sim->walk, &sim->nodes[rank].mark);
}

void ibshift_node_begin(struct ibshift_simulation *sim, uint32_t rank)
{
    ibshift_walk_begin(&sim->walk, &sim->pages, sim->request->alg, sim->request->plan, rank,
                       sim->window);
    go_on(sim, rank);
}

static void fly_list(struct ibshift_simulation *sim, int32_t first, enum ibshift_class which)
{
    for (int32_t i = first; i != IBSHIFT_NO_MESSAGE; i = sim->messages[i].next) {
        struct ibshift_price_message *message = &sim->messages[i];

        message->flight = ibshift_walk_fly(&sim->walk, which, message->round, message->index);
    }
}

/* What was in flight is what is posted, what has come, what waits for a grant and what is not
 * acknowledged. */
void ibshift_node_resume(struct ibshift_simulation *sim, uint32_t rank)
{
    const struct ibshift_node *node = &sim->nodes[rank];
    struct ibshift_posted *posted = &sim->posted[(size_t)rank * sim->slots];
    struct ibshift_unacked *unacked = &sim->unacked[(size_t)rank * sim->slots];

    ibshift_walk_resume(&sim->walk, rank, &node->mark);
    for (uint32_t i = 0; i < node->posted_count; i++) {
        posted[i].flight =
            ibshift_walk_fly(&sim->walk, IBSHIFT_CLASS_RECV, posted[i].round, posted[i].index);
    }
    fly_list(sim, node->arrived, IBSHIFT_CLASS_RECV);
    fly_list(sim, node->asked, IBSHIFT_CLASS_SEND);
    for (uint32_t i = 0; i < node->unacked_count; i++) {
        struct ibshift_unacked *send = &unacked[(node->unacked_first + i) % sim->slots];

        send->flight = ibshift_walk_fly(&sim->walk, IBSHIFT_CLASS_SEND, send->round, 0);
    }
}

void ibshift_node_advance(struct ibshift_simulation *sim, uint32_t rank)
{
    ibshift_node_resume(sim, rank);
    go_on(sim, rank);
}
