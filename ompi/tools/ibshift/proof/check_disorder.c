/*
 * A run in a random legal order, against memory as a network treats it: a posted receive's blocks
 * are worthless until its data is there, a send's blocks are read at some moment before it ends and
 * must not change before it has ended. A few messages to each rank may be buffered: those end
 * before their receive is posted.
 */
#include "proof/check_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int run_all(struct disorder *run)
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

int check_disorder(struct check_state *state)
{
    struct disorder run = {.state = state, .random = state->check->seed * 2 + 1};
    int rc;

    run.ranks = calloc(state->plan->ranks, sizeof(*run.ranks));
    if (run.ranks == NULL) {
        return -ENOMEM;
    }
    rc = run_all(&run);
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
