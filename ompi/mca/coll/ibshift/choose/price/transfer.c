/* What messages do between ranks, and the memory of it (choose/price/run.h). */
#include "choose/price/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1024, MOST = 1 << 24 };

/* Its place, or IBSHIFT_NO_MESSAGE: there is no memory for one. */
static int32_t make_message(struct ibshift_price_run *sim)
{
    struct ibshift_price_messages *messages = &sim->messages;

    if (messages->unused != IBSHIFT_NO_MESSAGE) {
        int32_t index = messages->unused;

        messages->unused = messages->all[index].next;
        return index;
    }
    if (messages->count == messages->capacity) {
        int32_t capacity = messages->capacity > 0 ? 2 * messages->capacity : FIRST;
        struct ibshift_price_message *all =
            capacity <= MOST ? realloc(messages->all, (size_t)capacity * sizeof(*all)) : NULL;

        if (all == NULL) {
            sim->error = -ENOMEM;
            return IBSHIFT_NO_MESSAGE;
        }
        messages->all = all;
        messages->capacity = capacity;
    }
    return messages->count++;
}

/* The first of the list between these ranks with that key leaves it. */
static int32_t take_message(struct ibshift_price_messages *messages, int32_t *list, uint32_t from,
                            uint32_t to, uint32_t key)
{
    for (; *list != IBSHIFT_NO_MESSAGE; list = &messages->all[*list].next) {
        const struct ibshift_price_message *m = &messages->all[*list];
        int32_t index = *list;

        if (m->from == from && m->to == to && m->key == key) {
            *list = m->next;
            return index;
        }
    }
    return IBSHIFT_NO_MESSAGE;
}

static bool is_before(const struct ibshift_event *a, const struct ibshift_event *b)
{
    return a->time < b->time || (a->time == b->time && (int32_t)(a->sequence - b->sequence) < 0);
}

static int grow(struct ibshift_heap *heap)
{
    size_t capacity = heap->capacity > 0 ? 2 * heap->capacity : FIRST;
    struct ibshift_event *events = realloc(heap->events, capacity * sizeof(*events));

    if (events == NULL) {
        return -ENOMEM;
    }
    heap->events = events;
    heap->capacity = capacity;
    return 0;
}

/* Four children a node: half the levels of two, and the four lie in two cache lines. */
static int push(struct ibshift_heap *heap, struct ibshift_event event)
{
    size_t at = heap->count;

    if (at == heap->capacity && grow(heap) != 0) {
        return -ENOMEM;
    }
    event.sequence = heap->sequence++;
    heap->count++;
    while (at > 0 && is_before(&event, &heap->events[(at - 1) / 4])) {
        heap->events[at] = heap->events[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap->events[at] = event;
    return 0;
}

static size_t least_child(const struct ibshift_heap *heap, size_t at)
{
    size_t child = 4 * at + 1, least = child;
    size_t end = child + 4 < heap->count ? child + 4 : heap->count;

    while (++child < end) {
        if (is_before(&heap->events[child], &heap->events[least])) {
            least = child;
        }
    }
    return least;
}

struct ibshift_event ibshift_price_pop(struct ibshift_heap *heap)
{
    struct ibshift_event first = heap->events[0];
    struct ibshift_event last = heap->events[--heap->count];
    size_t at = 0;

    while (4 * at + 1 < heap->count) {
        size_t child = least_child(heap, at);

        if (!is_before(&heap->events[child], &last)) {
            break;
        }
        heap->events[at] = heap->events[child];
        at = child;
    }
    heap->events[at] = last;
    return first;
}

void ibshift_price_push(struct ibshift_price_run *sim, double time, uint32_t rank, int32_t item)
{
    int rc = push(&sim->heap, (struct ibshift_event){time, 0, rank, item});

    sim->error = sim->error != 0 ? sim->error : rc;
}

void ibshift_price_report(const struct ibshift_price_run *sim, uint32_t rank,
                          const struct ibshift_price_message *message,
                          struct ibshift_price_event event)
{
    const struct ibshift_price_request *r = sim->request;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    if (r->seen != NULL) {
        (void)r->alg->emit(r->plan, rank, message->round, steps);
        event.rank = rank;
        event.round = message->round;
        event.step = &steps[message->index];
        event.bytes = message->bytes;
        r->seen(r->context, &event);
    }
}

void ibshift_price_work(struct ibshift_price_run *sim, uint32_t rank, double begin, double time)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];

    node->clock = begin + time;
    sim->loads[rank].worked += time;
    node->finish = ibshift_price_later(node->finish, node->clock);
    node->was_busy = true;
    if (node->clock > sim->most) {
        sim->error = -ERANGE;
    }
}

void ibshift_price_acknowledge(struct ibshift_price_run *sim, uint32_t rank, double now)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];

    while (node->unacked_count > 0 && ibshift_price_unacked_at(sim, rank, 0)->done <= now) {
        ibshift_walks_complete(sim->walks, rank, IBSHIFT_CLASS_SEND,
                               ibshift_price_unacked_at(sim, rank, 0)->round);
        node->unacked_first = (node->unacked_first + 1) % sim->slots;
        node->unacked_count--;
    }
}

/* In order of their ends: a send that had to wait for its grant may end after a later one. */
static void hold_until_acknowledged(struct ibshift_price_run *sim, uint32_t rank, uint32_t round,
                                    double done)
{
    uint32_t place = sim->nodes[rank].unacked_count++;

    for (; place > 0 && ibshift_price_unacked_at(sim, rank, place - 1)->done > done; place--) {
        *ibshift_price_unacked_at(sim, rank, place) =
            *ibshift_price_unacked_at(sim, rank, place - 1);
    }
    *ibshift_price_unacked_at(sim, rank, place) = (struct ibshift_price_unacked){done, round};
}

/* When the acknowledgement of a long send will be back is known once it has arrived. */
static void acknowledged(struct ibshift_price_run *sim, uint32_t rank, uint32_t round, double done)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    uint32_t place = 0;

    while (ibshift_price_unacked_at(sim, rank, place)->round != round ||
           isfinite(ibshift_price_unacked_at(sim, rank, place)->done)) {
        place++;
    }
    for (node->unacked_count--; place < node->unacked_count; place++) {
        *ibshift_price_unacked_at(sim, rank, place) =
            *ibshift_price_unacked_at(sim, rank, place + 1);
    }
    hold_until_acknowledged(sim, rank, round, done);
    node->finish = ibshift_price_later(node->finish, done);
    ibshift_price_push(sim, done, rank, IBSHIFT_NO_MESSAGE);
}

/*
 * The pieces behind the first, if there are any: each waits for the end of the one before. Messages of the window take turns on the
 * wire, which the walk fills with one after the other: what it is idle, as too few of them wait for a round trip, comes before.
 */
static void post_pieces(struct ibshift_price_run *sim, struct ibshift_price_message *message)
{
    const struct ibshift_model *model = &sim->model;
    struct ibshift_port_load *port = &sim->loads[message->from].out;
    double began = sim->nodes[message->from].clock, others, wire, idle;
    uint64_t piece = sim->request->piece, further;

    if (piece == 0 || message->bytes <= piece ||
        ibshift_price_is_near(sim, message->from, message->to)) {
        return;
    }
    further = (message->bytes - 1) / piece;
    wire = (double)piece * model->gap_byte;
    others = sim->request->peers > 0 ? sim->request->peers : sim->plan->ranks - 1;
    others = others < sim->window ? others : sim->window;
    idle = ibshift_price_later((wire + 2 * model->latency) / others - wire, 0) * (double)further;
    port->wire = ibshift_price_later(port->wire, began) + idle;
    port->turn += idle;
    ibshift_price_work(sim, message->from, began, (double)further * model->send_min);
    message->least = sim->nodes[message->from].clock + model->latency +
                     (double)(message->bytes - further * piece) * model->gap_byte;
    sim->post_total += further;
}

/* The bytes of a send leave at `begin` or when the port lets them, but not before `earliest`. */
static void leave(struct ibshift_price_run *sim, int32_t index, double begin, double earliest)
{
    const struct ibshift_price_message *message = &sim->messages.all[index];
    const struct ibshift_model *model =
        ibshift_price_model_between(sim, message->from, message->to);
    struct ibshift_port_load *port = &sim->loads[message->from].out;
    double leaves = ibshift_price_later(begin, earliest), end = leaves;

    if (message->is_copy) {
        leaves = end = sim->nodes[message->from].cast_leaves;
    } else if (!ibshift_price_is_near(sim, message->from, message->to)) {
        port->wire = ibshift_price_later(port->wire, earliest);
        leaves = ibshift_port_take(model, port, begin, message->bytes, &end);
        sim->nodes[message->from].cast_leaves = leaves;
    }
    ibshift_price_report(sim, message->from, message,
                         (struct ibshift_price_event){
                             .begin = message->begin, .end = message->end, .leaves = leaves});
    ibshift_price_push(sim, leaves + model->latency, message->to, index);
    if (message->is_cast) {
        ibshift_walks_complete(sim->walks, message->from, IBSHIFT_CLASS_SEND, message->round);
    } else if (ibshift_model_needs_grant(model, message->bytes)) {
        hold_until_acknowledged(sim, message->from, message->round, INFINITY);
    } else if (model->at_once == 0) {
        hold_until_acknowledged(
            sim, message->from, message->round,
            ibshift_price_later(end + 2 * model->latency, message->least + model->latency));
    } else {
        ibshift_walks_complete(sim->walks, message->from, IBSHIFT_CLASS_SEND, message->round);
    }
}

/* The rank posts the receive of a long message. */
static void send_grant(struct ibshift_price_run *sim, uint32_t rank,
                       const struct ibshift_step *step)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    const struct ibshift_model *model = ibshift_price_model_between(sim, rank, step->peer);
    bool is_there = !sim->request->grants_anew && !ibshift_price_is_near(sim, rank, step->peer) &&
                    ibshift_sizes_stand(&sim->sizes, step);
    int32_t at = make_message(sim);

    if (at == IBSHIFT_NO_MESSAGE) {
        return;
    }
    sim->messages.all[at] = (struct ibshift_price_message){
        .from = rank, .to = step->peer, .key = ibshift_step_key(step), .is_grant = true};
    sim->messages.all[at].stands = is_there;
    if (is_there && !sim->has_begun) {
        ibshift_price_message_put(&sim->messages, &sim->nodes[step->peer].grants, at);
        return;
    }
    node->clock += is_there ? 0 : model->send_min;
    sim->loads[rank].worked += is_there ? 0 : model->send_min;
    ibshift_price_push(sim, is_there ? 0 : node->clock + model->latency, step->peer, at);
}

/* A long message may leave: it is posted, and its bytes pass through the sender's processor, now. */
static void move(struct ibshift_price_run *sim, int32_t index, double begin)
{
    struct ibshift_price_message *message = &sim->messages.all[index];
    const struct ibshift_model *model =
        ibshift_price_model_between(sim, message->from, message->to);
    double *clock = &sim->nodes[message->from].clock, moved;

    message->begin = *clock;
    ibshift_price_work(sim, message->from, *clock,
                       message->overhead + model->granted +
                           (double)message->bytes * model->send_byte);
    moved = message->end = *clock;
    post_pieces(sim, message);
    leave(sim, index, begin, moved);
}

void ibshift_price_arrive_grant(struct ibshift_price_run *sim, uint32_t rank, double now,
                                int32_t index)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    const struct ibshift_price_message *grant = &sim->messages.all[index];
    bool is_late = !grant->stands;
    double time = is_late ? ibshift_price_model_between(sim, rank, grant->from)->recv_min : 0;
    int32_t at = take_message(&sim->messages, &node->asked, rank, grant->from, grant->key);

    if (at == IBSHIFT_NO_MESSAGE) {
        ibshift_price_message_put(&sim->messages, &node->grants, index);
        return;
    }
    ibshift_price_message_free(&sim->messages, index);
    now = ibshift_price_later(now, node->clock) + time;
    node->clock = now;
    sim->loads[rank].worked += time;
    sim->messages.all[at].hops += is_late;
    move(sim, at, now);
}

/* A long send: true when its grant is there, else it waits for that. */
static bool ask_grant(struct ibshift_price_run *sim, uint32_t rank, int32_t index)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    const struct ibshift_price_message *message = &sim->messages.all[index];
    int32_t grant = take_message(&sim->messages, &node->grants, message->to, rank, message->key);

    if (grant == IBSHIFT_NO_MESSAGE) {
        ibshift_price_message_put(&sim->messages, &node->asked, index);
        return false;
    }
    ibshift_price_message_free(&sim->messages, grant);
    return true;
}

void ibshift_price_send(struct ibshift_price_run *sim, const struct ibshift_price_message *message)
{
    const struct ibshift_model *model =
        ibshift_price_model_between(sim, message->from, message->to);
    int32_t at = make_message(sim);

    if (at == IBSHIFT_NO_MESSAGE) {
        return;
    }
    sim->messages.all[at] = *message;
    if (!ibshift_model_needs_grant(model, message->bytes)) {
        if (model->at_once == 0) { /* no message waits, but long ones are no shorter */
            post_pieces(sim, &sim->messages.all[at]);
        }
        leave(sim, at, message->begin, message->end);
    } else if (ask_grant(sim, message->from, at)) {
        move(sim, at, message->begin);
    }
}

/* A message and its receive have found each other: it is in line by the time that it is ready. */
static void meet(struct ibshift_price_run *sim, uint32_t rank, int32_t index,
                 const struct ibshift_price_posted *posted)
{
    struct ibshift_price_message *all = sim->messages.all, *message = &all[index];
    int32_t *list = &sim->nodes[rank].arrived;

    message->round = posted->round;
    message->index = posted->index;
    while (*list != IBSHIFT_NO_MESSAGE && all[*list].ready <= message->ready) {
        list = &all[*list].next;
    }
    ibshift_price_message_put(&sim->messages, list, index);
}

static void post_one(struct ibshift_price_run *sim, uint32_t rank,
                     const struct ibshift_price_posted *posted)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    int32_t index = take_message(&sim->messages, &node->early, posted->from, rank, posted->key);

    if (index == IBSHIFT_NO_MESSAGE) {
        sim->posted[(size_t)rank * sim->slots + node->posted_count++] = *posted;
    } else {
        sim->messages.all[index].ready =
            ibshift_price_later(sim->messages.all[index].ready, node->clock);
        meet(sim, rank, index, posted);
    }
}

void ibshift_price_post(struct ibshift_price_run *sim, uint32_t rank)
{
    struct ibshift_walks *walks = sim->walks;
    const struct ibshift_walks_cursor *at = &walks->ranks[rank].cursor[IBSHIFT_CLASS_RECV];
    const struct ibshift_step *next;

    while ((next = ibshift_walks_next(walks, rank, IBSHIFT_CLASS_RECV)) != NULL) {
        struct ibshift_step step = *next;
        uint64_t bytes = ibshift_sizes_step(&sim->sizes, rank, &step);
        struct ibshift_price_posted posted = {step.peer, ibshift_step_key(&step), at->round,
                                              at->index};

        ibshift_walks_start(walks, rank, IBSHIFT_CLASS_RECV);
        if (step.count > 0 && bytes == 0) {
            ibshift_walks_complete(walks, rank, IBSHIFT_CLASS_RECV, posted.round);
            continue;
        }
        if (ibshift_model_needs_grant(ibshift_price_model_between(sim, step.peer, rank), bytes)) {
            send_grant(sim, rank, &step);
        }
        post_one(sim, rank, &posted);
    }
}

bool ibshift_price_arrive(struct ibshift_price_run *sim, uint32_t rank, double now, int32_t index)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    struct ibshift_price_posted *posted = &sim->posted[(size_t)rank * sim->slots];
    struct ibshift_price_message *message = &sim->messages.all[index];
    const struct ibshift_model *model = ibshift_price_model_between(sim, message->from, rank);
    int32_t *list = &node->early;

    message->ready = now;
    if (!ibshift_price_is_near(sim, message->from, rank)) {
        ibshift_port_take(&sim->model, &sim->loads[rank].in, now, message->bytes, &message->ready);
        message->ready = ibshift_price_later(message->ready, message->least);
    }
    if (ibshift_model_needs_grant(model, message->bytes)) {
        acknowledged(sim, message->from, message->round, message->ready + model->latency);
    }
    for (uint32_t i = 0; i < node->posted_count; i++) {
        if (posted[i].from == message->from && posted[i].key == message->key) {
            meet(sim, rank, index, &posted[i]);
            memmove(&posted[i], &posted[i + 1], (--node->posted_count - i) * sizeof(*posted));
            return true;
        }
    }
    while (*list != IBSHIFT_NO_MESSAGE) {
        list = &sim->messages.all[*list].next;
    }
    ibshift_price_message_put(&sim->messages, list, index);
    return false;
}
