#include "proof/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/check_impl.h"

/* A send or receive in flight. */
struct flight {
    struct ibshift_step step;
    struct check_place place;
    uint32_t number; /* of the walk */
};

struct rank_run {
    struct ibshift_walk walk;
    bool queued;
};

/*
 * No message is buffered: a send ends when its receive is posted, at once. Ranks wait in a queue
 * for their next turn.
 */
struct run {
    struct check_state *state;
    struct check_known *known;
    struct rank_run *ranks;
    struct ibshift_pages pages;
    struct flight *flights; /* [rank][class][window], oldest first */
    uint32_t *queue;        /* circular */
    uint32_t head;
    uint32_t waiting;
};

static struct flight *flights_of(const struct run *run, uint32_t rank, enum ibshift_class which)
{
    return run->flights + ((size_t)rank * 2 + which) * run->ranks[rank].walk.window;
}

static void enqueue(struct run *run, uint32_t rank)
{
    if (!run->ranks[rank].queued) {
        run->ranks[rank].queued = true;
        run->queue[(run->head + run->waiting++) % run->state->plan->ranks] = rank;
    }
}

static struct flight *find(const struct run *run, uint32_t rank, enum ibshift_class which,
                           uint32_t peer)
{
    struct flight *flights = flights_of(run, rank, which);

    for (uint32_t i = 0; i < run->ranks[rank].walk.in_flight[which]; i++) {
        if (flights[i].step.peer == peer) {
            return &flights[i];
        }
    }
    return NULL;
}

static void end(struct run *run, uint32_t rank, enum ibshift_class which, struct flight *flight)
{
    struct ibshift_walk *walk = &run->ranks[rank].walk;
    uint32_t left = walk->in_flight[which] - 1, number = flight->number;

    for (struct flight *end = flights_of(run, rank, which) + left; flight < end; flight++) {
        flight[0] = flight[1];
    }
    ibshift_walk_complete(walk, which, number);
    enqueue(run, rank);
}

static int transfer(struct run *run, const struct flight *send, const struct flight *recv)
{
    struct check_state *state = run->state;
    int rc = 0;

    if (ibshift_step_key(&send->step) != ibshift_step_key(&recv->step) ||
        send->step.count != recv->step.count) {
        return check_fail(
            state, &recv->place,
            "expects %u blocks under tag %u.%u from rank %u, which sends %u under %u.%u",
            recv->step.count, recv->step.tag, recv->step.part, send->place.rank, send->step.count,
            send->step.tag, send->step.part);
    }
    if (run->known != NULL) {
        check_known_message(run->known, send->place.rank, send->step.need, recv->place.rank,
                            recv->place.round);
    }
    for (uint32_t i = 0; i < send->step.count && rc == 0; i++) {
        rc = check_cells_store(
            state, &recv->place, &recv->step, recv->step.first + i,
            check_cell(state, send->place.rank, send->step.buf, send->step.first + i));
    }
    return rc;
}

static int match(struct run *run, uint32_t sender, uint32_t receiver)
{
    struct flight *send = find(run, sender, IBSHIFT_CLASS_SEND, receiver);
    struct flight *recv = find(run, receiver, IBSHIFT_CLASS_RECV, sender);
    int rc;

    if (send == NULL || recv == NULL) {
        return 0;
    }
    rc = transfer(run, send, recv);
    if (rc == 0) {
        end(run, sender, IBSHIFT_CLASS_SEND, send);
        end(run, receiver, IBSHIFT_CLASS_RECV, recv);
    }
    return rc;
}

static int start(struct run *run, uint32_t rank, enum ibshift_class which,
                 const struct ibshift_step *step)
{
    struct ibshift_walk *walk = &run->ranks[rank].walk;
    struct check_place place = {rank, walk->cursor[which].round, walk->cursor[which].index};
    struct flight flight = {*step, place, 0};
    int rc = 0;

    if (which == IBSHIFT_CLASS_LOCAL) {
        rc = check_cells_local(run->state, &place, step);
        ibshift_walk_start(walk, which);
        return rc;
    }
    flight.number = ibshift_walk_start(walk, which);
    flights_of(run, rank, which)[walk->in_flight[which] - 1] = flight;
    return which == IBSHIFT_CLASS_SEND ? match(run, rank, flight.step.peer)
                                       : match(run, flight.step.peer, rank);
}

static int turn(struct run *run, uint32_t rank)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (int which = 0; which < IBSHIFT_CLASSES; which++) {
            const struct ibshift_step *step;

            while ((step = ibshift_walk_next(&run->ranks[rank].walk, which)) != NULL) {
                int rc = start(run, rank, which, step);

                if (rc < 0) {
                    return rc;
                }
                moved = true;
            }
        }
    }
    return 0;
}

/* Says what the first rank that is not at its end waits for. */
static int check_ended(struct run *run)
{
    static const char *const waits[] = {"for a receive from", "to send to",
                                        "for a local step after"};

    for (uint32_t rank = 0; rank < run->state->plan->ranks; rank++) {
        const struct ibshift_walk *walk = &run->ranks[rank].walk;
        struct check_place place = {rank, walk->rounds, 0};
        int which = 0;

        if (ibshift_walk_is_done(walk)) {
            continue;
        }
        for (; which < IBSHIFT_CLASS_LOCAL; which++) {
            if (walk->in_flight[which] > 0) {
                const struct flight *flight = flights_of(run, rank, which);

                return check_fail(run->state, &flight->place,
                                  "deadlock with window %u: waits %s rank %u", walk->window,
                                  waits[which], flight->step.peer);
            }
        }
        place.round = walk->progress.received;
        return check_fail(run->state, &place, "deadlock with window %u: nothing may start",
                          walk->window);
    }
    return 0;
}

static int run_decided(struct run *run)
{
    struct check_state *state = run->state;

    for (uint32_t rank = 0; rank < state->plan->ranks; rank++) {
        run->ranks[rank].queued = false;
        ibshift_walk_begin(&run->ranks[rank].walk, &run->pages, state->alg, state->plan, rank,
                           state->check->window);
        enqueue(run, rank);
    }
    while (run->waiting > 0) {
        uint32_t rank = run->queue[run->head];
        int rc;

        run->head = (run->head + 1) % state->plan->ranks;
        run->waiting--;
        run->ranks[rank].queued = false;
        rc = turn(run, rank);
        if (rc < 0) {
            return rc;
        }
    }
    return check_ended(run);
}

static int check_run(struct check_state *state)
{
    struct run run = {.state = state};
    size_t ranks = state->plan->ranks;
    bool barrier = state->alg->collective == IBSHIFT_BARRIER;
    int rc = -ENOMEM;

    run.ranks = malloc(ranks * sizeof(*run.ranks)); /* walks are begun, not cleared */
    run.queue = calloc(ranks, sizeof(*run.queue));
    run.flights = calloc(ranks * 2 * state->check->window, sizeof(*run.flights));
    run.known = barrier ? check_known_new(state) : NULL;
    if (run.ranks != NULL && run.queue != NULL && run.flights != NULL &&
        (!barrier || run.known != NULL)) {
        rc = run_decided(&run);
    }
    if (rc == 0 && barrier) {
        rc = check_known_expect(state, run.known);
    }
    check_known_free(run.known);
    free(run.flights);
    free(run.queue);
    free(run.ranks);
    return rc;
}

/*
 * A run in a random legal order, against memory as a network treats it: a posted receive's blocks
 * are worthless until its data is there, a send's blocks are read at some moment before it ends and
 * must not change before it has ended. A few messages to each rank may be buffered: those end
 * before their receive is posted.
 */

enum { CREDITS = 2 }; /* messages buffered at a receiver */

struct message {
    struct ibshift_step send, recv;
    struct check_place sender, receiver;
    uint32_t send_flight, recv_flight;
    struct check_cell *data; /* NULL until it was read */
    bool sent;               /* the send has ended */
    bool buffered;           /* it did so before its receive was posted */
    bool posted;             /* the receive is posted and this is its message */
    bool delivered;
    struct message *next; /* of the same sender, in the order of their starts */
};

struct posted {
    struct ibshift_step step;
    struct check_place place;
    uint32_t flight;
};

struct rank_state {
    struct ibshift_walk walk;
    struct message *messages; /* started as sender, the receiver's end is still to come */
    struct posted posted[IBSHIFT_WINDOW_MAX]; /* receives without a message, oldest first */
    uint32_t posted_count;
    uint32_t buffered;
};

struct disorder {
    struct check_state *state;
    struct rank_state *ranks;
    struct ibshift_pages pages;
    uint64_t random;
};

static uint32_t pick(struct disorder *run, uint32_t bound)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return (uint32_t)((run->random >> 33) % bound);
}

static struct check_cell *cells_of(struct disorder *run, const struct check_place *place,
                                   const struct ibshift_step *step)
{
    return check_cell(run->state, place->rank, step->buf, step->first);
}

static int start_send(struct disorder *run, const struct check_place *place,
                      const struct ibshift_step *step)
{
    struct message *message = calloc(1, sizeof(*message)),
                   **last = &run->ranks[place->rank].messages;

    if (message == NULL) {
        return -ENOMEM;
    }
    message->send = *step;
    message->sender = *place;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = message;
    message->send_flight = ibshift_walk_start(&run->ranks[place->rank].walk, IBSHIFT_CLASS_SEND);
    return 1;
}

static int start_recv(struct disorder *run, const struct check_place *place,
                      const struct ibshift_step *step)
{
    struct rank_state *rank = &run->ranks[place->rank];
    struct check_cell *cells = cells_of(run, place, step);

    for (uint32_t i = 0; i < step->count; i++) {
        cells[i] = (struct check_cell){.lost = 1};
    }
    rank->posted[rank->posted_count].step = *step;
    rank->posted[rank->posted_count].place = *place;
    rank->posted[rank->posted_count++].flight = ibshift_walk_start(&rank->walk, IBSHIFT_CLASS_RECV);
    return 1;
}

/* Each of the functions below makes one move and returns 1, or 0 when none is there to make. */
static int start_one(struct disorder *run, uint32_t rank)
{
    struct ibshift_walk *walk = &run->ranks[rank].walk;
    uint32_t first = pick(run, IBSHIFT_CLASSES);

    for (uint32_t i = 0; i < IBSHIFT_CLASSES; i++) {
        enum ibshift_class which = (first + i) % IBSHIFT_CLASSES;
        const struct ibshift_step *step = ibshift_walk_next(walk, which);
        struct check_place place = {rank, walk->cursor[which].round, walk->cursor[which].index};
        int rc;

        if (step == NULL) {
            continue;
        }
        if (which == IBSHIFT_CLASS_LOCAL) {
            rc = check_cells_local(run->state, &place, step);
            ibshift_walk_start(walk, which);
            return rc < 0 ? rc : 1;
        }
        return which == IBSHIFT_CLASS_SEND ? start_send(run, &place, step)
                                           : start_recv(run, &place, step);
    }
    return 0;
}

static int read_message(struct disorder *run, struct message *message)
{
    size_t size = message->send.count * sizeof(*message->data);

    message->data = malloc(size + 1);
    if (message->data == NULL) {
        return -ENOMEM;
    }
    memcpy(message->data, cells_of(run, &message->sender, &message->send), size);
    return 1;
}

static int end_send(struct disorder *run, struct message *message)
{
    const struct check_cell *now = cells_of(run, &message->sender, &message->send);

    for (uint32_t i = 0; i < message->send.count; i++) {
        if (!check_cells_equal(&now[i], &message->data[i])) {
            return check_fail(run->state, &message->sender,
                              "%s block %u changed while it was being sent",
                              check_buffer_name[message->send.buf], message->send.first + i);
        }
    }
    message->sent = true;
    if (!message->posted) {
        message->buffered = true;
        run->ranks[message->send.peer].buffered++;
    }
    ibshift_walk_complete(&run->ranks[message->sender.rank].walk, IBSHIFT_CLASS_SEND,
                          message->send_flight);
    return 1;
}

/* The receive that this message belongs to, when it is the oldest of its pair and that is posted.
 */
static int attach(struct disorder *run, struct message *message)
{
    struct rank_state *rank = &run->ranks[message->send.peer];

    for (const struct message *m = run->ranks[message->sender.rank].messages; m != message;
         m = m->next) {
        if (m->send.peer == message->send.peer && !m->posted) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < rank->posted_count; i++) {
        if (rank->posted[i].step.peer == message->sender.rank) {
            message->recv = rank->posted[i].step;
            message->receiver = rank->posted[i].place;
            message->recv_flight = rank->posted[i].flight;
            message->posted = true;
            memmove(&rank->posted[i], &rank->posted[i + 1],
                    (--rank->posted_count - i) * sizeof(rank->posted[0]));
            rank->buffered -= message->buffered;
            return 1;
        }
    }
    return 0;
}

static int deliver(struct disorder *run, struct message *message)
{
    int rc = 0;

    if (ibshift_step_key(&message->send) != ibshift_step_key(&message->recv) ||
        message->send.count != message->recv.count) {
        return check_fail(run->state, &message->receiver, "and rank %u name different messages",
                          message->sender.rank);
    }
    for (uint32_t i = 0; i < message->recv.count && rc == 0; i++) {
        const struct check_cell *cell = cells_of(run, &message->receiver, &message->recv) + i;

        if (cell->count != 0 || !cell->lost) {
            return check_fail(run->state, &message->receiver,
                              "%s block %u changed while it was being received",
                              check_buffer_name[message->recv.buf], message->recv.first + i);
        }
        rc = check_cells_store(run->state, &message->receiver, &message->recv,
                               message->recv.first + i, &message->data[i]);
    }
    message->delivered = true;
    return rc < 0 ? rc : 1;
}

static int end_recv(struct disorder *run, struct message *message)
{
    const struct check_cell *now = cells_of(run, &message->receiver, &message->recv);
    struct message **link = &run->ranks[message->sender.rank].messages;

    for (uint32_t i = 0; i < message->recv.count; i++) {
        if (!check_cells_equal(&now[i], &message->data[i])) {
            return check_fail(run->state, &message->receiver,
                              "%s block %u changed while it was being received",
                              check_buffer_name[message->recv.buf], message->recv.first + i);
        }
    }
    ibshift_walk_complete(&run->ranks[message->receiver.rank].walk, IBSHIFT_CLASS_RECV,
                          message->recv_flight);
    while (*link != message) {
        link = &(*link)->next;
    }
    *link = message->next;
    free(message->data);
    free(message);
    return 1;
}

/* Read, buffered or not, attached to its receive, delivered, ended on both sides, in any order that
 * makes sense. */
static int move_message(struct disorder *run, struct message *message)
{
    bool room = run->ranks[message->send.peer].buffered < CREDITS;
    int rc = message->posted ? 0 : attach(run, message);

    if (rc != 0) {
        return rc;
    }
    if (message->data == NULL) {
        return message->posted || room ? read_message(run, message) : 0;
    }
    if (!message->sent && (message->posted ? message->delivered || pick(run, 2) : room)) {
        return end_send(run, message);
    }
    if (message->posted && !message->delivered) {
        return deliver(run, message);
    }
    return message->delivered && message->sent ? end_recv(run, message) : 0;
}

static int move_rank(struct disorder *run, uint32_t rank)
{
    bool start_first = pick(run, 2);
    int rc = start_first ? start_one(run, rank) : 0;
    struct message *message = run->ranks[rank].messages;

    for (uint32_t skip = pick(run, 4);
         rc == 0 && message != NULL && message->next != NULL && skip > 0; skip--) {
        message = message->next;
    }
    rc = rc == 0 && message != NULL ? move_message(run, message) : rc;
    for (message = run->ranks[rank].messages; rc == 0 && message != NULL; message = message->next) {
        rc = move_message(run, message);
        if (rc != 0) {
            break;
        }
    }
    return rc == 0 && !start_first ? start_one(run, rank) : rc;
}

static int run_disordered(struct disorder *run)
{
    struct check_state *state = run->state;
    uint32_t ranks = state->plan->ranks;
    int rc = 1;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        ibshift_walk_begin(&run->ranks[rank].walk, &run->pages, state->alg, state->plan, rank,
                           state->check->window);
    }
    while (rc > 0) {
        uint32_t first = pick(run, ranks);

        rc = 0;
        for (uint32_t i = 0; i < ranks && rc == 0; i++) {
            rc = move_rank(run, (first + i) % ranks);
        }
    }
    for (uint32_t rank = 0; rank < ranks && rc == 0; rank++) {
        struct check_place place = {rank, run->ranks[rank].walk.progress.received, 0};

        if (!ibshift_walk_is_done(&run->ranks[rank].walk)) {
            rc = check_fail(state, &place, "deadlock with window %u and %d credits",
                            state->check->window, CREDITS);
        }
    }
    return rc;
}

static int check_disorder(struct check_state *state)
{
    struct disorder run = {.state = state, .random = state->check->seed * 2 + 1};
    int rc;

    run.ranks = calloc(state->plan->ranks, sizeof(*run.ranks));
    if (run.ranks == NULL) {
        return -ENOMEM;
    }
    rc = run_disordered(&run);
    for (uint32_t rank = 0; rank < state->plan->ranks; rank++) {
        struct message *message = run.ranks[rank].messages;

        while (message != NULL) {
            struct message *next = message->next;

            free(message->data);
            free(message);
            message = next;
        }
    }
    free(run.ranks);
    return rc;
}

int ibshift_check_plan(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                       const struct ibshift_check *check, struct ibshift_check_result *result)
{
    struct ibshift_check bounded = *check;
    struct check_state state = {.alg = alg, .plan = plan, .check = &bounded, .result = result};
    int rc;

    if (bounded.window < 1 || bounded.window > IBSHIFT_WINDOW_MAX) {
        bounded.window = bounded.window < 1 ? 1 : IBSHIFT_WINDOW_MAX;
    }
    memset(result, 0, sizeof(*result));
    rc = ibshift_alg_check(alg, plan, result->why, sizeof(result->why));
    if (rc < 0) {
        return rc;
    }
    rc = check_cells_layout(&state);
    if (rc == 0) {
        check_cells_fill(&state);
        rc = check_order_all(&state);
    }
    if (rc == 0) {
        rc = check->seed == 0 ? check_run(&state) : check_disorder(&state);
    }
    if (rc == 0) {
        rc = check_cells_expect(&state);
    }
    free(state.cells);
    free(state.layout);
    return rc;
}
