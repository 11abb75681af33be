/* The time of a plan: what each rank does with its processor, in virtual time (choose/price.h). */
#include "choose/price.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/burst.h"
#include "choose/size.h"
#include "choose/space.h"
#include "plan/nodes.h"

enum { EMITTED_MOST = 1 << 14 }; /* rounds that are kept: about a MiB of steps */

struct posted {
    uint32_t from, key, round, index, flight;
};

/* A send until its acknowledgement is back. */
struct unacked {
    double done;
    uint32_t round, flight;
};

struct node {
    struct ibshift_walk_mark mark;
    struct ibshift_burst sends, recvs;
    double clock, wake;
    bool is_asleep; /* a wake-up is on its way */
    bool was_busy;
    double finish;
    int32_t arrived; /* has a receive; by ready */
    int32_t early;   /* has none yet; in order of arrival */
    int32_t asked;   /* sends that wait for their grant */
    int32_t grants;  /* that wait for their send */
    uint32_t posted_count, unacked_first, unacked_count;
    uint32_t hops; /* of the longest chain that has come */
    uint64_t sent;
};

struct simulation {
    const struct ibshift_price_request *request;
    struct ibshift_model model;
    struct ibshift_sizes sizes;
    uint32_t window;
    struct ibshift_walk *walk;     /* of the rank that acts */
    const struct ibshift_alg *alg; /* the request's, whose rounds may be kept */
    const struct ibshift_plan *plan;
    uint32_t slots; /* entries of posted and unacked a rank: what a rank can use */
    struct ibshift_heap heap;
    struct node *nodes;
    struct ibshift_load *loads; /* by rank, as nodes */
    struct posted *posted;      /* slots a rank */
    struct unacked *unacked;    /* slots a rank, used as a ring */
    struct ibshift_price_messages messages;
    uint64_t message_total, byte_total;
    double most;    /* us, or infinity */
    bool has_begun; /* until then nobody sends, and grants that stand are put where sends look */
    struct ibshift_price_space *space;
    int error;
};

static bool is_near(const struct simulation *sim, uint32_t a, uint32_t b)
{
    const struct ibshift_plan *plan = sim->request->plan;

    return sim->request->near != NULL && ibshift_nodes_of(plan, a) == ibshift_nodes_of(plan, b);
}

/* What messages between the two cost. */
static const struct ibshift_model *model_between(const struct simulation *sim, uint32_t a,
                                                 uint32_t b)
{
    return is_near(sim, a, b) ? sim->request->near : &sim->model;
}

static int32_t take_message(struct simulation *sim)
{
    int32_t at = ibshift_price_message_new(&sim->messages);

    sim->error = at == IBSHIFT_NO_MESSAGE ? -ENOMEM : sim->error;
    return at;
}

static void push(struct simulation *sim, double time, uint32_t rank, int32_t item)
{
    int rc = ibshift_heap_push(&sim->heap, (struct ibshift_event){time, 0, rank, item});

    sim->error = sim->error != 0 ? sim->error : rc;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* A send, or a receive, of the rank: event has its times. */
static void report_message(const struct simulation *sim, uint32_t rank,
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

static void work(struct simulation *sim, uint32_t rank, double begin, double time)
{
    struct node *node = &sim->nodes[rank];

    node->clock = begin + time;
    sim->loads[rank].worked += time;
    node->finish = later(node->finish, node->clock);
    node->was_busy = true;
    if (node->clock > sim->most) {
        sim->error = -ERANGE;
    }
}

static struct unacked *unacked_at(const struct simulation *sim, uint32_t rank, uint32_t place)
{
    return &sim->unacked[(size_t)rank * sim->slots +
                         (sim->nodes[rank].unacked_first + place) % sim->slots];
}

/* Acknowledgements that are back by then, for the rank in sim->walk. */
static void acknowledge(struct simulation *sim, uint32_t rank, double now)
{
    struct node *node = &sim->nodes[rank];

    while (node->unacked_count > 0 && unacked_at(sim, rank, 0)->done <= now) {
        ibshift_walk_complete(sim->walk, IBSHIFT_CLASS_SEND, unacked_at(sim, rank, 0)->flight);
        node->unacked_first = (node->unacked_first + 1) % sim->slots;
        node->unacked_count--;
    }
}

/* In order of their ends: a send that had to wait for its grant may end after a later one. */
static void hold_until_acknowledged(struct simulation *sim, uint32_t rank, uint32_t round,
                                    uint32_t flight, double done)
{
    uint32_t place = sim->nodes[rank].unacked_count++;

    for (; place > 0 && unacked_at(sim, rank, place - 1)->done > done; place--) {
        *unacked_at(sim, rank, place) = *unacked_at(sim, rank, place - 1);
    }
    *unacked_at(sim, rank, place) = (struct unacked){done, round, flight};
}

/* When the acknowledgement of a long send will be back is known once it has arrived. */
static void acknowledged(struct simulation *sim, uint32_t rank, uint32_t round, double done)
{
    struct node *node = &sim->nodes[rank];
    uint32_t place = 0, flight;

    while (unacked_at(sim, rank, place)->round != round ||
           isfinite(unacked_at(sim, rank, place)->done)) {
        place++;
    }
    flight = unacked_at(sim, rank, place)->flight;
    for (node->unacked_count--; place < node->unacked_count; place++) {
        *unacked_at(sim, rank, place) = *unacked_at(sim, rank, place + 1);
    }
    hold_until_acknowledged(sim, rank, round, flight, done);
    node->finish = later(node->finish, done);
    push(sim, done, rank, IBSHIFT_NO_MESSAGE);
}

/* The bytes of a send leave at `begin` or when the port lets them, but not before `earliest`. */
static void leave(struct simulation *sim, int32_t index, double begin, double earliest)
{
    const struct ibshift_price_message *message = &sim->messages.all[index];
    const struct ibshift_model *model = model_between(sim, message->from, message->to);
    struct ibshift_port_load *port = &sim->loads[message->from].out;
    double leaves = later(begin, earliest), end = leaves;

    if (!is_near(sim, message->from, message->to)) {
        port->wire = later(port->wire, earliest);
        leaves = ibshift_port_take(model, port, begin, message->bytes, &end);
    }
    report_message(sim, message->from, message,
                   (struct ibshift_price_event){.begin = message->begin,
                                                .end = message->end,
                                                .leaves = leaves,
                                                .arrives = leaves + model->latency});
    push(sim, leaves + model->latency, message->to, index);
    if (ibshift_model_needs_grant(model, message->bytes)) {
        hold_until_acknowledged(sim, message->from, message->round, message->flight, INFINITY);
    } else if (model->at_once == 0) {
        hold_until_acknowledged(sim, message->from, message->round, message->flight,
                                end + 2 * model->latency);
    } else {
        ibshift_walk_complete(sim->walk, IBSHIFT_CLASS_SEND, message->flight);
    }
}

/* The rank posts the receive of a long message. */
static void send_grant(struct simulation *sim, uint32_t rank, const struct ibshift_step *step)
{
    struct node *node = &sim->nodes[rank];
    const struct ibshift_model *model = model_between(sim, rank, step->peer);
    bool is_there = !sim->request->grants_anew && !is_near(sim, rank, step->peer) &&
                    ibshift_sizes_stand(&sim->sizes, step);
    int32_t at = take_message(sim);

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
    push(sim, is_there ? 0 : node->clock + model->latency, step->peer, at);
}

/* A long message may leave: its bytes pass through the sender's processor now. */
static void move(struct simulation *sim, int32_t index, double begin)
{
    const struct ibshift_price_message *message = &sim->messages.all[index];
    const struct ibshift_model *model = model_between(sim, message->from, message->to);
    double *clock = &sim->nodes[message->from].clock;

    work(sim, message->from, *clock, model->granted + (double)message->bytes * model->send_byte);
    leave(sim, index, begin, *clock);
}

/* A grant is at its rank, whose send may leave now if it is there. */
static void arrive_grant(struct simulation *sim, uint32_t rank, double now, int32_t index)
{
    struct node *node = &sim->nodes[rank];
    const struct ibshift_price_message *grant = &sim->messages.all[index];
    bool is_late = !grant->stands;
    double time = is_late ? model_between(sim, rank, grant->from)->recv_min : 0;
    int32_t at =
        ibshift_price_message_take(&sim->messages, &node->asked, rank, grant->from, grant->key);

    if (at == IBSHIFT_NO_MESSAGE) {
        ibshift_price_message_put(&sim->messages, &node->grants, index);
        return;
    }
    ibshift_price_message_free(&sim->messages, index);
    now = later(now, node->clock) + time;
    node->clock = now;
    sim->loads[rank].worked += time;
    sim->messages.all[at].hops += is_late;
    move(sim, at, now);
}

/* A long send: true when its grant is there, else it waits for that. */
static bool ask_grant(struct simulation *sim, uint32_t rank, int32_t index)
{
    struct node *node = &sim->nodes[rank];
    const struct ibshift_price_message *message = &sim->messages.all[index];
    int32_t grant =
        ibshift_price_message_take(&sim->messages, &node->grants, message->to, rank, message->key);

    if (grant == IBSHIFT_NO_MESSAGE) {
        ibshift_price_message_put(&sim->messages, &node->asked, index);
        return false;
    }
    ibshift_price_message_free(&sim->messages, grant);
    return true;
}

/* A message and its receive have found each other. */
static void meet(struct simulation *sim, uint32_t rank, int32_t index, const struct posted *posted)
{
    struct ibshift_price_message *message = &sim->messages.all[index];

    message->round = posted->round;
    message->index = posted->index;
    message->flight = posted->flight;
    ibshift_price_message_insert(&sim->messages, &sim->nodes[rank].arrived, index);
}

static void post_one(struct simulation *sim, uint32_t rank, const struct posted *posted)
{
    struct node *node = &sim->nodes[rank];
    int32_t index =
        ibshift_price_message_take(&sim->messages, &node->early, posted->from, rank, posted->key);

    if (index == IBSHIFT_NO_MESSAGE) {
        sim->posted[(size_t)rank * sim->slots + node->posted_count++] = *posted;
    } else {
        sim->messages.all[index].ready = later(sim->messages.all[index].ready, node->clock);
        meet(sim, rank, index, posted);
    }
}

/* Every receive that the rank in sim->walk may post now. */
static void post(struct simulation *sim, uint32_t rank)
{
    struct ibshift_walk *walk = sim->walk;
    const struct ibshift_cursor *at = &walk->cursor[IBSHIFT_CLASS_RECV];
    const struct ibshift_step *next;

    while ((next = ibshift_walk_next(walk, IBSHIFT_CLASS_RECV)) != NULL) {
        struct ibshift_step step = *next;
        uint64_t bytes = ibshift_sizes_step(&sim->sizes, rank, &step);
        struct posted posted = {step.peer, ibshift_step_key(&step), at->round, at->index, 0};

        posted.flight = ibshift_walk_start(walk, IBSHIFT_CLASS_RECV);
        if (step.count > 0 && bytes == 0) {
            ibshift_walk_complete(walk, IBSHIFT_CLASS_RECV, posted.flight);
            continue;
        }
        if (ibshift_model_needs_grant(model_between(sim, step.peer, rank), bytes)) {
            send_grant(sim, rank, &step);
        }
        post_one(sim, rank, &posted);
    }
}

/* A message is at the rank's port: finds its receive (true), or waits for it. */
static bool arrive(struct simulation *sim, uint32_t rank, double now, int32_t index)
{
    struct node *node = &sim->nodes[rank];
    struct posted *posted = &sim->posted[(size_t)rank * sim->slots];
    struct ibshift_price_message *message = &sim->messages.all[index];
    const struct ibshift_model *model = model_between(sim, message->from, rank);
    int32_t *list = &node->early;

    message->ready = now;
    if (!is_near(sim, message->from, rank)) {
        ibshift_port_take(&sim->model, &sim->loads[rank].in, now, message->bytes, &message->ready);
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

static void do_local(struct simulation *sim, uint32_t rank, struct ibshift_step step)
{
    struct node *node = &sim->nodes[rank];
    double rate = step.kind == IBSHIFT_STEP_COPY ? sim->model.copy_byte : sim->model.reduce_byte;
    struct ibshift_price_event event = {.rank = rank, .step = &step, .begin = node->clock};

    event.bytes = ibshift_sizes_step(&sim->sizes, rank, &step);
    work(sim, rank, node->clock, (double)event.bytes * rate);
    event.end = node->clock;
    event.round = sim->walk->cursor[IBSHIFT_CLASS_LOCAL].round;
    ibshift_walk_start(sim->walk, IBSHIFT_CLASS_LOCAL);
    if (sim->request->seen != NULL) {
        sim->request->seen(sim->request->context, &event);
    }
}

/* begin is when the port has a turn for it. */
static void do_send(struct simulation *sim, uint32_t rank, struct ibshift_step step, uint64_t bytes,
                    double begin)
{
    struct node *node = &sim->nodes[rank];
    const struct ibshift_cursor *at_step = &sim->walk->cursor[IBSHIFT_CLASS_SEND];
    struct ibshift_burst_place place = {IBSHIFT_STEP_SEND, rank, at_step->round, at_step->index};
    uint32_t flight = ibshift_walk_start(sim->walk, IBSHIFT_CLASS_SEND);
    const struct ibshift_model *model = model_between(sim, rank, step.peer);
    bool is_long = ibshift_model_needs_grant(model, bytes);
    double time =
        ibshift_burst_overhead(&node->sends, model, sim->alg, sim->plan, &place) +
        (is_long ? 0 : (double)bytes * model->send_byte + ibshift_model_copying(model, bytes));
    int32_t at = take_message(sim);

    if (at == IBSHIFT_NO_MESSAGE) {
        return;
    }
    sim->messages.all[at] =
        (struct ibshift_price_message){.begin = begin,
                                       .end = begin + time,
                                       .bytes = bytes,
                                       .from = rank,
                                       .to = step.peer,
                                       .key = ibshift_step_key(&step),
                                       .round = place.round,
                                       .index = place.index,
                                       .flight = flight,
                                       .hops = step.need > 0 ? node->hops + 1 : 1};
    work(sim, rank, begin, time);
    node->sent++;
    sim->message_total++;
    sim->byte_total += bytes;
    if (!is_long) {
        leave(sim, at, begin, begin + time);
    } else if (ask_grant(sim, rank, at)) {
        move(sim, at, begin);
    }
}

static void do_recv(struct simulation *sim, uint32_t rank)
{
    struct node *node = &sim->nodes[rank];
    int32_t at = node->arrived;
    struct ibshift_price_message message = sim->messages.all[at];
    const struct ibshift_model *model = model_between(sim, message.from, rank);
    struct ibshift_burst_place place = {IBSHIFT_STEP_RECV, rank, message.round, message.index};
    double begin = later(node->clock, message.ready);

    node->arrived = message.next;
    node->hops = message.hops > node->hops ? message.hops : node->hops;
    ibshift_price_message_free(&sim->messages, at);
    work(sim, rank, begin,
         ibshift_burst_overhead(&node->recvs, model, sim->alg, sim->plan, &place) +
             ibshift_model_copying(model, message.bytes));
    report_message(
        sim, rank, &message,
        (struct ibshift_price_event){.begin = begin, .end = node->clock, .ready = message.ready});
    ibshift_walk_complete(sim->walk, IBSHIFT_CLASS_RECV, message.flight);
}

/* When an acknowledgement comes that a step waits for, or infinity. */
static double awaited_acknowledgement(const struct simulation *sim, uint32_t rank)
{
    const struct node *node = &sim->nodes[rank];
    const struct ibshift_walk *walk = sim->walk;

    if (node->unacked_count == 0) {
        return INFINITY;
    }
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        const struct ibshift_cursor *cursor = &walk->cursor[class];
        bool is_full = class == IBSHIFT_CLASS_SEND && walk->in_flight[class] == walk->window;

        if (cursor->has_step && (is_full || cursor->step.drain > walk->progress.sent)) {
            return unacked_at(sim, rank, 0)->done;
        }
    }
    return INFINITY;
}

static void sleep_until(struct simulation *sim, uint32_t rank, double time)
{
    struct node *node = &sim->nodes[rank];

    if (!node->is_asleep || time < node->wake) {
        node->is_asleep = true;
        node->wake = time;
        push(sim, time, rank, IBSHIFT_NO_MESSAGE);
    }
}

/* The next thing that the rank does; false when it must wait for an event. */
static bool act(struct simulation *sim, uint32_t rank)
{
    struct node *node = &sim->nodes[rank];
    const struct ibshift_step *step, *local;
    double send_at = INFINITY, recv_at = INFINITY, other_at;
    uint64_t bytes = 0;

    if ((step = ibshift_walk_next(sim->walk, IBSHIFT_CLASS_SEND)) != NULL) {
        bytes = ibshift_sizes_step(&sim->sizes, rank, step);
        if (bytes == 0 && step->count > 0) {
            ibshift_walk_skip(sim->walk, IBSHIFT_CLASS_SEND);
            return true;
        }
        send_at = is_near(sim, rank, step->peer)
                      ? node->clock
                      : later(node->clock, sim->loads[rank].out.turn -
                                               (sim->model.free_messages - 1) * sim->model.gap);
    }
    if (send_at > node->clock &&
        (local = ibshift_walk_next(sim->walk, IBSHIFT_CLASS_LOCAL)) != NULL) {
        do_local(sim, rank, *local);
        return true;
    }
    if (node->arrived != IBSHIFT_NO_MESSAGE) {
        recv_at = later(node->clock, sim->messages.all[node->arrived].ready);
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

/* Does all that the rank can do without hearing from others. */
static void go_on(struct simulation *sim, uint32_t rank)
{
    do {
        acknowledge(sim, rank, sim->nodes[rank].clock);
        post(sim, rank);
    } while (sim->error == 0 && act(sim, rank));
    ibshift_walk_mark(sim->walk, &sim->nodes[rank].mark);
}

static void fly_list(struct simulation *sim, int32_t first, enum ibshift_class which)
{
    for (int32_t i = first; i != IBSHIFT_NO_MESSAGE; i = sim->messages.all[i].next) {
        struct ibshift_price_message *message = &sim->messages.all[i];

        message->flight = ibshift_walk_fly(sim->walk, which, message->round, message->index);
    }
}

/* What was in flight is what is posted, what has come, what waits for a grant and what is not
 * acknowledged. */
static void resume(struct simulation *sim, uint32_t rank)
{
    const struct node *node = &sim->nodes[rank];
    struct posted *posted = &sim->posted[(size_t)rank * sim->slots];

    ibshift_walk_resume(sim->walk, rank, &node->mark);
    for (uint32_t i = 0; i < node->posted_count; i++) {
        posted[i].flight =
            ibshift_walk_fly(sim->walk, IBSHIFT_CLASS_RECV, posted[i].round, posted[i].index);
    }
    fly_list(sim, node->arrived, IBSHIFT_CLASS_RECV);
    fly_list(sim, node->asked, IBSHIFT_CLASS_SEND);
    for (uint32_t i = 0; i < node->unacked_count; i++) {
        struct unacked *send = unacked_at(sim, rank, i);

        send->flight = ibshift_walk_fly(sim->walk, IBSHIFT_CLASS_SEND, send->round, 0);
    }
}

/* nodes and loads are zero. */
static bool make_ranks(struct simulation *sim, uint32_t ranks)
{
    size_t zeroed = ranks * (sizeof(*sim->nodes) + sizeof(*sim->loads));
    size_t slots = (size_t)ranks * sim->slots;
    size_t size = zeroed + slots * (sizeof(*sim->unacked) + sizeof(*sim->posted));

    sim->nodes = ibshift_price_space_ranks(sim->space, size);
    if (sim->nodes == NULL) {
        return false;
    }
    memset(sim->nodes, 0, zeroed);
    sim->loads = (struct ibshift_load *)(sim->nodes + ranks);
    sim->unacked = (struct unacked *)(sim->loads + ranks);
    sim->posted = (struct posted *)(sim->unacked + slots);
    return true;
}

static int begin(struct simulation *sim)
{
    uint32_t ranks = sim->plan->ranks;
    bool posts_first = ibshift_sizes_may_stand(&sim->sizes);

    if (!make_ranks(sim, ranks)) {
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        sim->nodes[rank] = (struct node){.arrived = IBSHIFT_NO_MESSAGE,
                                         .early = IBSHIFT_NO_MESSAGE,
                                         .asked = IBSHIFT_NO_MESSAGE,
                                         .grants = IBSHIFT_NO_MESSAGE};
    }
    sim->has_begun = !posts_first;
    for (uint32_t rank = 0; rank < ranks && sim->error == 0; rank++) {
        ibshift_walk_begin(sim->walk, &sim->space->pages, sim->alg, sim->plan, rank, sim->window);
        post(sim, rank);
        ibshift_walk_mark(sim->walk, &sim->nodes[rank].mark);
        if (!posts_first) {
            go_on(sim, rank);
        }
    }
    for (uint32_t rank = 0; rank < ranks && posts_first && sim->error == 0; rank++) {
        sim->has_begun = true;
        resume(sim, rank);
        go_on(sim, rank);
    }
    return sim->error;
}

static int run(struct simulation *sim)
{
    while (sim->heap.count > 0 && sim->error == 0) {
        struct ibshift_event event = ibshift_heap_pop(&sim->heap);
        struct node *node = &sim->nodes[event.rank];

        if (event.item != IBSHIFT_NO_MESSAGE && sim->messages.all[event.item].is_grant) {
            arrive_grant(sim, event.rank, event.time, event.item);
        } else if (event.item != IBSHIFT_NO_MESSAGE) {
            if (!arrive(sim, event.rank, event.time, event.item)) {
                continue;
            }
        } else {
            node->is_asleep = node->is_asleep && node->wake != event.time;
            node->clock = later(node->clock, event.time);
        }
        resume(sim, event.rank);
        go_on(sim, event.rank);
    }
    return sim->error;
}

static int finish(struct simulation *sim, struct ibshift_price *price)
{
    struct ibshift_price sum = {.messages = sim->message_total, .bytes = sim->byte_total};
    bool is_first = true;

    for (uint32_t rank = 0; rank < sim->request->plan->ranks; rank++) {
        struct node *node = &sim->nodes[rank];

        resume(sim, rank);
        acknowledge(sim, rank, INFINITY);
        if (!ibshift_walk_is_done(sim->walk)) {
            return -EDEADLK;
        }
        sum.most = node->sent > sum.most ? node->sent : sum.most;
        sum.hops = node->hops > sum.hops ? node->hops : sum.hops;
        if (node->was_busy) {
            sum.last = later(node->finish, sum.last);
            sum.first = is_first || node->finish < sum.first ? node->finish : sum.first;
            is_first = false;
        }
    }
    *price = sum;
    return sim->request->crowd == NULL
               ? 0
               : ibshift_crowd_share(sim->request->crowd,
                                     &(struct ibshift_run){sim->request->plan->ranks, sim->loads,
                                                           sum.last, sum.hops},
                                     &sim->model, &price->last, &price->of);
}

static int price_in(const struct ibshift_price_request *request, struct ibshift_price_space *space,
                    struct ibshift_price *price)
{
    struct simulation sim = {
        .request = request,
        .model = *request->model,
        .window = request->window > 0 && request->window < IBSHIFT_WINDOW_MAX ? request->window
                                                                              : IBSHIFT_WINDOW_MAX,
        .space = space,
        .walk = &space->walk,
        .alg = request->alg,
        .plan = request->plan,
        .heap = {.events = space->heap.events, .capacity = space->heap.capacity},
        .messages = {.all = space->messages.all,
                     .capacity = space->messages.capacity,
                     .unused = IBSHIFT_NO_MESSAGE},
        .most = request->most > 0 ? request->most : INFINITY,
    };
    int rc;

    ibshift_sizes_begin(&sim.sizes, request->alg, request->plan, request->bytes,
                        request->element > 0 ? request->element : 1);
    if (ibshift_emitted_begin(&space->emitted, request->alg, request->plan, EMITTED_MOST)) {
        sim.alg = &space->emitted.alg;
        sim.plan = &space->emitted.plan;
    }
    if (ibshift_plan_exceeds(sim.alg, sim.plan, request->limit)) {
        return -E2BIG;
    }
    sim.slots = ibshift_plan_slots(sim.alg, sim.plan, sim.window);
    rc = begin(&sim);
    rc = rc == 0 ? run(&sim) : rc;
    rc = rc == 0 ? finish(&sim, price) : rc;
    space->heap = sim.heap;
    space->messages = sim.messages;
    return rc;
}

int ibshift_price(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    struct ibshift_price_space *own = request->space == NULL ? ibshift_price_space_new() : NULL;
    struct ibshift_price_space *space = own != NULL ? own : request->space;
    int rc = space != NULL ? price_in(request, space, price) : -ENOMEM;

    ibshift_price_space_free(own);
    return rc;
}
