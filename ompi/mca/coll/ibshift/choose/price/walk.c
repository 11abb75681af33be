/* The time of a plan: what each rank does with its processor, in virtual time (choose/price.h). */
#include "choose/price.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "choose/price/run.h"
#include "plan/walk.h"

/* How many messages a rank posts (or takes in) in a row: the n of o_s(n) and o_r(n).
 *
 * Messages in a row belong together when they are of one round as the literature draws it (one tag)
 * or of one size, and nothing that the rank does between them waits for more receives than the
 * first did. So the sends of a linear scatter or of a modified ring are one burst, those of a tree
 * one burst a round, and those of a ring are alone. It is a property of the plan, not of the
 * timing. */
struct burst_place {
    int kind; /* of a step: a send or a receive */
    uint32_t rank, round, index;
};

/* Overheads have fallen to their minimum long before. */
#define BURST_LIMIT (1u << 20)

static bool is_alike(const struct ibshift_step *step, const struct ibshift_step *first)
{
    return step->tag == first->tag || step->count == first->count;
}

/* A step of the round that is no receive waits for a receive of round `first` or later. */
static bool has_user(const struct ibshift_step *steps, uint32_t count, uint32_t first)
{
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].kind != IBSHIFT_STEP_RECV && steps[i].need > first) {
            return true;
        }
    }
    return false;
}

/* A send that needs more than the first did had to wait for something in between. */
static bool belongs(const struct ibshift_step *step, const struct ibshift_step *first)
{
    return is_alike(step, first) && (step->kind != IBSHIFT_STEP_SEND || step->need <= first->need);
}

/* Of the burst that begins there; at least 1. */
static uint32_t burst_length(struct ibshift_walks *walks, const struct burst_place *place)
{
    uint32_t rounds = walks->ranks[place->rank].rounds, round = place->round, index = place->index;
    uint32_t length = 0, count;
    int kind = place->kind;
    struct ibshift_step first;

    for (; round < rounds && length < BURST_LIMIT; round++, index = 0) {
        const struct ibshift_step *steps = ibshift_walks_look(walks, place->rank, round, &count);

        if (length == 0) {
            first = steps[index];
        } else if (kind == IBSHIFT_STEP_RECV && has_user(steps, count, place->round)) {
            return length;
        }
        for (; index < count; index++) {
            if (steps[index].kind == kind && !belongs(&steps[index], &first)) {
                return length;
            }
            length += steps[index].kind == kind;
        }
    }
    return length;
}

/* What the next message of the burst, or of a new one that begins there, costs its rank's processor
 * beside its bytes. */
static double burst_overhead(const struct ibshift_price_run *sim, struct ibshift_burst *burst,
                             const struct ibshift_model *model, const struct burst_place *place)
{
    bool is_send = place->kind == IBSHIFT_STEP_SEND;
    double max = is_send ? model->send_max : model->recv_max;
    double min = is_send ? model->send_min : model->recv_min;

    if (max == min) {
        return max;
    }
    if (burst->left == 0) {
        burst->length = burst_length(sim->walks, place);
        burst->left = burst->length;
    }
    burst->left--;
    return min + (max - min) / burst->length;
}

static void do_local(struct ibshift_price_run *sim, uint32_t rank, struct ibshift_step step)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    double rate = step.kind == IBSHIFT_STEP_COPY ? sim->model.copy_byte : sim->model.reduce_byte;
    struct ibshift_price_event event = {.rank = rank, .step = &step, .begin = node->clock};

    event.bytes = ibshift_sizes_step(&sim->sizes, rank, &step);
    ibshift_price_work(sim, rank, node->clock, (double)event.bytes * rate);
    event.end = node->clock;
    event.round = sim->walks->ranks[rank].cursor[IBSHIFT_CLASS_LOCAL].round;
    ibshift_walks_start(sim->walks, rank, IBSHIFT_CLASS_LOCAL);
    if (sim->request->seen != NULL) {
        sim->request->seen(sim->request->context, &event);
    }
}

/* Of multicast, one datagram is the sends of a key to all ranks but those of the own node. */
static bool is_cast(const struct ibshift_price_run *sim, uint32_t rank,
                    const struct ibshift_step *step, uint64_t bytes)
{
    return step->is_cast && bytes <= sim->plan->multicast && sim->plan->multicast > 0 &&
           !ibshift_price_is_near(sim, rank, step->peer);
}

static bool is_cast_again(struct ibshift_price_rank *node, const struct ibshift_step *step)
{
    uint32_t last = node->cast_key;

    node->cast_key = ibshift_step_key(step) + 1; /* 0: none yet */
    return node->cast_key == last;
}

/* begin is when the port has a turn for it. */
static void do_send(struct ibshift_price_run *sim, uint32_t rank, struct ibshift_step step,
                    uint64_t bytes, double begin)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    const struct ibshift_walks_cursor *at_step =
        &sim->walks->ranks[rank].cursor[IBSHIFT_CLASS_SEND];
    struct burst_place place = {IBSHIFT_STEP_SEND, rank, at_step->round, at_step->index};
    const struct ibshift_model *model = ibshift_price_model_between(sim, rank, step.peer);
    bool is_long = ibshift_model_needs_grant(model, bytes),
         is_datagram = is_cast(sim, rank, &step, bytes),
         is_copy = is_datagram && is_cast_again(node, &step);
    double overhead = is_copy ? 0 : burst_overhead(sim, &node->sends, model, &place);
    double time = is_long || is_copy ? 0
                                     : overhead + (double)bytes * model->send_byte +
                                           ibshift_model_copying(model, bytes);

    ibshift_walks_start(sim->walks, rank, IBSHIFT_CLASS_SEND);
    ibshift_price_work(sim, rank, begin, time);
    node->sent++;
    sim->message_total += !is_copy;
    sim->post_total += !is_copy;
    sim->byte_total += is_copy ? 0 : bytes;
    ibshift_price_send(sim,
                       &(struct ibshift_price_message){.begin = begin,
                                                       .end = begin + time,
                                                       .overhead = overhead,
                                                       .bytes = bytes,
                                                       .from = rank,
                                                       .to = step.peer,
                                                       .key = ibshift_step_key(&step),
                                                       .round = place.round,
                                                       .index = place.index,
                                                       .is_cast = is_datagram,
                                                       .is_copy = is_copy,
                                                       .hops = step.need > 0 ? node->hops + 1 : 1});
}

static void do_recv(struct ibshift_price_run *sim, uint32_t rank)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    int32_t at = node->arrived;
    struct ibshift_price_message message = sim->messages.all[at];
    const struct ibshift_model *model = ibshift_price_model_between(sim, message.from, rank);
    struct burst_place place = {IBSHIFT_STEP_RECV, rank, message.round, message.index};
    double begin = ibshift_price_later(node->clock, message.ready);

    node->arrived = message.next;
    node->hops = message.hops > node->hops ? message.hops : node->hops;
    ibshift_price_message_free(&sim->messages, at);
    ibshift_price_work(sim, rank, begin,
                       burst_overhead(sim, &node->recvs, model, &place) +
                           ibshift_model_copying(model, message.bytes));
    ibshift_price_report(
        sim, rank, &message,
        (struct ibshift_price_event){.begin = begin, .end = node->clock, .ready = message.ready});
    ibshift_walks_complete(sim->walks, rank, IBSHIFT_CLASS_RECV, message.round);
}

/* When an acknowledgement comes that a step waits for, or infinity. */
static double awaited_acknowledgement(const struct ibshift_price_run *sim, uint32_t rank)
{
    const struct ibshift_price_rank *node = &sim->nodes[rank];
    const struct ibshift_walks_rank *walk = &sim->walks->ranks[rank];

    if (node->unacked_count == 0) {
        return INFINITY;
    }
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        const struct ibshift_step *step =
            ibshift_walks_coming(sim->walks, rank, (enum ibshift_class) class);
        bool is_full = class == IBSHIFT_CLASS_SEND && walk->in_flight[class] == sim->window;

        if (step != NULL && (is_full || step->drain > walk->progress.sent)) {
            return ibshift_price_unacked_at(sim, rank, 0)->done;
        }
    }
    return INFINITY;
}

static void sleep_until(struct ibshift_price_run *sim, uint32_t rank, double time)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];

    if (!node->is_asleep || time < node->wake) {
        node->is_asleep = true;
        node->wake = time;
        ibshift_price_push(sim, time, rank, IBSHIFT_NO_MESSAGE);
    }
}

/* The next thing that the rank does; false when it must wait for an event. */
static bool act(struct ibshift_price_run *sim, uint32_t rank)
{
    struct ibshift_price_rank *node = &sim->nodes[rank];
    const struct ibshift_step *step, *local;
    double send_at = INFINITY, recv_at = INFINITY, other_at;
    uint64_t bytes = 0;

    if ((step = ibshift_walks_next(sim->walks, rank, IBSHIFT_CLASS_SEND)) != NULL) {
        bytes = ibshift_sizes_step(&sim->sizes, rank, step);
        if (bytes == 0 && step->count > 0) {
            uint32_t round = sim->walks->ranks[rank].cursor[IBSHIFT_CLASS_SEND].round;

            ibshift_walks_start(sim->walks, rank, IBSHIFT_CLASS_SEND);
            ibshift_walks_complete(sim->walks, rank, IBSHIFT_CLASS_SEND, round);
            return true;
        }
        send_at = ibshift_price_is_near(sim, rank, step->peer)
                      ? node->clock
                      : ibshift_price_later(node->clock,
                                            sim->loads[rank].out.turn -
                                                (sim->model.free_messages - 1) * sim->model.gap);
    }
    if (send_at > node->clock &&
        (local = ibshift_walks_next(sim->walks, rank, IBSHIFT_CLASS_LOCAL)) != NULL) {
        do_local(sim, rank, *local);
        return true;
    }
    if (node->arrived != IBSHIFT_NO_MESSAGE) {
        recv_at = ibshift_price_later(node->clock, sim->messages.all[node->arrived].ready);
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
        node->clock = ibshift_price_later(node->clock, other_at);
        return true;
    }
    if (isfinite(other_at)) {
        sleep_until(sim, rank, other_at);
    }
    return false;
}

/* Does all that the rank can do without hearing from others. */
static void go_on(struct ibshift_price_run *sim, uint32_t rank)
{
    do {
        ibshift_price_acknowledge(sim, rank, sim->nodes[rank].clock);
        ibshift_price_post(sim, rank);
    } while (sim->error == 0 && act(sim, rank));
}

/* nodes and loads are zero, the rest belongs to them. */
static bool make_ranks(struct ibshift_price_run *sim, uint32_t ranks)
{
    size_t zeroed = ranks * (sizeof(*sim->nodes) + sizeof(*sim->loads));
    size_t slots = (size_t)ranks * sim->slots;
    size_t size = zeroed + slots * (sizeof(*sim->unacked) + sizeof(*sim->posted));

    if (size > sim->space->ranks_size) {
        void *memory = realloc(sim->space->ranks, size);

        if (memory == NULL) {
            return false;
        }
        sim->space->ranks = memory;
        sim->space->ranks_size = size;
    }
    sim->nodes = sim->space->ranks;
    memset(sim->nodes, 0, zeroed);
    sim->loads = (struct ibshift_load *)(sim->nodes + ranks);
    sim->unacked = (struct ibshift_price_unacked *)(sim->loads + ranks);
    sim->posted = (struct ibshift_price_posted *)(sim->unacked + slots);
    return true;
}

static int begin(struct ibshift_price_run *sim)
{
    uint32_t ranks = sim->plan->ranks;
    bool posts_first = ibshift_sizes_may_stand(&sim->sizes);

    if (!make_ranks(sim, ranks)) {
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        sim->nodes[rank] = (struct ibshift_price_rank){.arrived = IBSHIFT_NO_MESSAGE,
                                                       .early = IBSHIFT_NO_MESSAGE,
                                                       .asked = IBSHIFT_NO_MESSAGE,
                                                       .grants = IBSHIFT_NO_MESSAGE};
    }
    sim->has_begun = !posts_first;
    for (uint32_t rank = 0; rank < ranks && sim->error == 0; rank++) {
        ibshift_walks_begin_rank(sim->walks, rank);
        ibshift_price_post(sim, rank);
        if (!posts_first) {
            go_on(sim, rank);
        }
    }
    sim->has_begun = true;
    for (uint32_t rank = 0; rank < ranks && posts_first && sim->error == 0; rank++) {
        go_on(sim, rank);
    }
    return sim->error;
}

static int run(struct ibshift_price_run *sim)
{
    while (sim->heap.count > 0 && sim->error == 0) {
        struct ibshift_event event = ibshift_price_pop(&sim->heap);
        struct ibshift_price_rank *node = &sim->nodes[event.rank];

        if (event.item != IBSHIFT_NO_MESSAGE && sim->messages.all[event.item].is_grant) {
            ibshift_price_arrive_grant(sim, event.rank, event.time, event.item);
        } else if (event.item != IBSHIFT_NO_MESSAGE) {
            if (!ibshift_price_arrive(sim, event.rank, event.time, event.item)) {
                continue;
            }
        } else {
            node->is_asleep = node->is_asleep && node->wake != event.time;
            node->clock = ibshift_price_later(node->clock, event.time);
        }
        go_on(sim, event.rank);
    }
    return sim->error;
}

static int finish(struct ibshift_price_run *sim, struct ibshift_price *price)
{
    struct ibshift_price sum = {
        .messages = sim->message_total, .posts = sim->post_total, .bytes = sim->byte_total};
    bool is_first = true;

    for (uint32_t rank = 0; rank < sim->request->plan->ranks; rank++) {
        struct ibshift_price_rank *node = &sim->nodes[rank];

        ibshift_price_acknowledge(sim, rank, INFINITY);
        if (!ibshift_walks_are_done(sim->walks, rank)) {
            return -EDEADLK;
        }
        sum.most = node->sent > sum.most ? node->sent : sum.most;
        sum.hops = node->hops > sum.hops ? node->hops : sum.hops;
        if (node->was_busy) {
            sum.last = ibshift_price_later(node->finish, sum.last);
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
    struct ibshift_price_run sim = {
        .request = request,
        .model = *request->model,
        .window = request->window > 0 && request->window < IBSHIFT_WINDOW_MAX ? request->window
                                                                              : IBSHIFT_WINDOW_MAX,
        .space = space,
        .walks = &space->walks,
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
    if (ibshift_plan_exceeds(sim.alg, sim.plan, request->limit)) {
        return -E2BIG;
    }
    sim.slots = ibshift_plan_slots(sim.alg, sim.plan, sim.window);
    rc = ibshift_walks_begin(sim.walks, sim.alg, sim.plan, sim.window);
    rc = rc == 0 ? begin(&sim) : rc;
    rc = rc == 0 ? run(&sim) : rc;
    rc = rc == 0 && sim.walks->lacks_memory ? -ENOMEM : rc;
    rc = rc == 0 ? finish(&sim, price) : rc;
    space->heap = sim.heap;
    space->messages = sim.messages;
    return rc;
}

struct ibshift_price_space *ibshift_price_space_new(void)
{
    return calloc(1, sizeof(struct ibshift_price_space));
}

void ibshift_price_space_free(struct ibshift_price_space *space)
{
    if (space != NULL) {
        free(space->heap.events);
        free(space->messages.all);
        free(space->ranks);
        ibshift_walks_free(&space->walks);
        free(space);
    }
}

int ibshift_price(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    struct ibshift_price_space *own = request->space == NULL ? ibshift_price_space_new() : NULL;
    struct ibshift_price_space *space = own != NULL ? own : request->space;
    int rc = space != NULL ? price_in(request, space, price) : -ENOMEM;

    ibshift_price_space_free(own);
    return rc;
}
