#include "proof/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/check_impl.h"

/*
 * Barriers move no data: what counts is who has heard of whom. A send is sure to tell only what
 * came in before its need, so each rank keeps what it heard by round.
 */
struct known {
    uint32_t ranks;
    uint32_t rounds;
    size_t words;
    uint64_t *heard; /* [rank][round + 1][words]; round 0 of each rank: itself */
};

static uint64_t *heard(const struct known *known, uint32_t rank, uint32_t row)
{
    return known->heard + ((size_t)rank * (known->rounds + 1) + row) * known->words;
}

static struct known *known_new(const struct check_state *state)
{
    struct known *known = calloc(1, sizeof(*known));

    if (known == NULL) {
        return NULL;
    }
    known->ranks = state->plan->ranks;
    known->words = (known->ranks + 63) / 64;
    for (uint32_t rank = 0; rank < known->ranks; rank++) {
        uint32_t rounds = state->alg->rounds(state->plan, rank);

        known->rounds = rounds > known->rounds ? rounds : known->rounds;
    }
    known->heard =
        calloc((size_t)known->ranks * (known->rounds + 1) * known->words, sizeof(*known->heard));
    if (known->heard == NULL) {
        free(known);
        return NULL;
    }
    for (uint32_t rank = 0; rank < known->ranks; rank++) {
        heard(known, rank, 0)[rank / 64] |= UINT64_C(1) << rank % 64;
    }
    return known;
}

static void known_free(struct known *known)
{
    if (known != NULL) {
        free(known->heard);
        free(known);
    }
}

static void known_message(struct known *known, uint32_t sender, uint32_t need, uint32_t receiver,
                          uint32_t round)
{
    uint64_t *target = heard(known, receiver, round + 1);

    for (uint32_t row = 0; row <= need; row++) {
        const uint64_t *source = heard(known, sender, row);

        for (size_t word = 0; word < known->words; word++) {
            target[word] |= source[word];
        }
    }
}

static int known_expect(struct check_state *state, const struct known *known)
{
    for (uint32_t rank = 0; rank < known->ranks; rank++) {
        for (uint32_t other = 0; other < known->ranks; other++) {
            uint64_t bit = 0;

            for (uint32_t row = 0; row <= known->rounds; row++) {
                bit |= heard(known, rank, row)[other / 64] >> other % 64 & 1;
            }
            if (bit == 0) {
                snprintf(state->result->why, sizeof(state->result->why),
                         "rank %u: may leave before rank %u has come", rank, other);
                return -EBADMSG;
            }
        }
    }
    return 0;
}

/*
 * All ranks at once. Without a seed no message is buffered: it goes as soon as both its ends have started. With
 * one the run takes a random legal order, against memory as a network treats it: a posted receive's
 * blocks are worthless until its data is there, a send's blocks are read at some moment before it ends and
 * must not change before it has ended, and a few messages to each rank end before their receive is posted.
 */

enum { CREDITS = 2 }; /* messages buffered at a receiver */

struct posted {
    struct ibshift_step step;
    struct check_place place;
    uint32_t flight;
};

struct message {
    struct posted send, recv;
    struct check_cell *data; /* NULL until it was read */
    bool sent;               /* the send has ended */
    bool buffered;           /* it did so before its receive was posted */
    bool posted;             /* the receive is posted and this is its message */
    bool delivered;
    struct message *next; /* of the same sender, in the order of their starts */
};

struct rank_run {
    struct ibshift_walk walk;
    struct message *messages; /* started as sender, the receiver's end is still to come */
    struct posted *posted;    /* receives without a message, oldest first */
    uint32_t posted_count;
    uint32_t buffered;
};

struct run {
    struct check_state *state;
    struct known *known; /* of a barrier */
    struct rank_run *ranks;
    struct posted *posted; /* [rank][window] */
    struct ibshift_pages pages;
    uint64_t random; /* 0: nothing is left to chance */
};

static uint32_t pick(struct run *run, uint32_t bound)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return (uint32_t)((run->random >> 33) % bound);
}

static struct check_cell *cells_of(struct run *run, const struct posted *end)
{
    return check_cell(run->state, end->place.rank, end->step.buf, end->step.first);
}

/* Each of the functions below makes one move and returns 1, or 0 when none is there to make. */
static int read_message(struct run *run, struct message *message)
{
    size_t size = message->send.step.count * sizeof(*message->data);

    message->data = malloc(size + 1);
    if (message->data == NULL) {
        return -ENOMEM;
    }
    memcpy(message->data, cells_of(run, &message->send), size);
    return 1;
}

/* Whether the blocks of one end still hold the message. */
static int check_held(struct run *run, const struct message *message, const struct posted *end,
                      const char *what)
{
    const struct check_cell *now = cells_of(run, end);

    for (uint32_t i = 0; i < end->step.count; i++) {
        if (!check_cells_equal(&now[i], &message->data[i])) {
            return check_fail(run->state, &end->place, "%s block %u changed while it was being %s",
                              check_buffer_name[end->step.buf], end->step.first + i, what);
        }
    }
    return 0;
}

static int end_send(struct run *run, struct message *message)
{
    int rc = check_held(run, message, &message->send, "sent");

    message->sent = true;
    if (!message->posted) {
        message->buffered = true;
        run->ranks[message->send.step.peer].buffered++;
    }
    ibshift_walk_complete(&run->ranks[message->send.place.rank].walk, IBSHIFT_CLASS_SEND,
                          message->send.flight);
    return rc < 0 ? rc : 1;
}

/* The receive that this message belongs to, when it is the oldest of its pair and that is posted.
 */
static int attach(struct run *run, struct message *message)
{
    struct rank_run *rank = &run->ranks[message->send.step.peer];
    uint32_t sender = message->send.place.rank;

    for (const struct message *m = run->ranks[sender].messages; m != message; m = m->next) {
        if (m->send.step.peer == message->send.step.peer && !m->posted) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < rank->posted_count; i++) {
        if (rank->posted[i].step.peer == sender) {
            message->recv = rank->posted[i];
            message->posted = true;
            memmove(&rank->posted[i], &rank->posted[i + 1],
                    (--rank->posted_count - i) * sizeof(rank->posted[0]));
            rank->buffered -= message->buffered;
            return 1;
        }
    }
    return 0;
}

static int deliver(struct run *run, struct message *message)
{
    const struct ibshift_step *send = &message->send.step, *recv = &message->recv.step;
    const struct check_place *sender = &message->send.place, *receiver = &message->recv.place;
    int rc = 0;

    if (ibshift_step_key(send) != ibshift_step_key(recv) || send->count != recv->count) {
        return check_fail(
            run->state, receiver,
            "expects %u blocks under tag %u.%u from rank %u, which sends %u under %u.%u",
            recv->count, recv->tag, recv->part, sender->rank, send->count, send->tag, send->part);
    }
    if (run->known != NULL) {
        known_message(run->known, sender->rank, send->need, receiver->rank, receiver->round);
    }
    for (uint32_t i = 0; i < recv->count && rc == 0; i++) {
        const struct check_cell *cell = cells_of(run, &message->recv) + i;

        if (run->random != 0 && (cell->count != 0 || !cell->lost)) {
            return check_fail(run->state, receiver,
                              "%s block %u changed while it was being received",
                              check_buffer_name[recv->buf], recv->first + i);
        }
        rc = check_cells_store(run->state, receiver, recv, recv->first + i, &message->data[i]);
    }
    message->delivered = true;
    return rc < 0 ? rc : 1;
}

static int end_recv(struct run *run, struct message *message)
{
    struct message **link = &run->ranks[message->send.place.rank].messages;
    int rc = check_held(run, message, &message->recv, "received");

    ibshift_walk_complete(&run->ranks[message->recv.place.rank].walk, IBSHIFT_CLASS_RECV,
                          message->recv.flight);
    while (*link != message) {
        link = &(*link)->next;
    }
    *link = message->next;
    free(message->data);
    free(message);
    return rc < 0 ? rc : 1;
}

/* Read, buffered or not, attached to its receive, delivered, ended on both sides, in any order that
 * makes sense. */
static int move_message(struct run *run, struct message *message)
{
    bool room = run->random != 0 && run->ranks[message->send.step.peer].buffered < CREDITS;
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

/* Without a seed: all its moves, if both ends have started. */
static int settle(struct run *run, struct message *message)
{
    int rc = attach(run, message);

    if (rc == 0) {
        return 1;
    }
    rc = read_message(run, message);
    rc = rc > 0 ? deliver(run, message) : rc;
    rc = rc > 0 ? end_send(run, message) : rc;
    return rc > 0 ? end_recv(run, message) : rc;
}

static int start_send(struct run *run, const struct posted *end)
{
    struct message *message = calloc(1, sizeof(*message)),
                   **last = &run->ranks[end->place.rank].messages;

    if (message == NULL) {
        return -ENOMEM;
    }
    message->send = *end;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = message;
    return run->random != 0 ? 1 : settle(run, message);
}

static int start_recv(struct run *run, const struct posted *end)
{
    struct rank_run *rank = &run->ranks[end->place.rank];
    struct message *message = run->ranks[end->step.peer].messages;

    rank->posted[rank->posted_count++] = *end;
    if (run->random != 0) {
        struct check_cell *cells = cells_of(run, end);

        for (uint32_t i = 0; i < end->step.count; i++) {
            cells[i] = (struct check_cell){.lost = 1};
        }
        return 1;
    }
    while (message != NULL && message->send.step.peer != end->place.rank) {
        message = message->next;
    }
    return message == NULL ? 1 : settle(run, message);
}

static int start_one(struct run *run, uint32_t rank)
{
    struct ibshift_walk *walk = &run->ranks[rank].walk;
    uint32_t first = pick(run, IBSHIFT_CLASSES);

    for (uint32_t i = 0; i < IBSHIFT_CLASSES; i++) {
        enum ibshift_class which = (first + i) % IBSHIFT_CLASSES;
        const struct ibshift_step *step = ibshift_walk_next(walk, which);
        struct posted end;
        int rc;

        if (step == NULL) {
            continue;
        }
        end =
            (struct posted){*step, {rank, walk->cursor[which].round, walk->cursor[which].index}, 0};
        if (which == IBSHIFT_CLASS_LOCAL) {
            rc = check_cells_local(run->state, &end.place, step);
            ibshift_walk_start(walk, which);
            return rc < 0 ? rc : 1;
        }
        end.flight = ibshift_walk_start(walk, which);
        return which == IBSHIFT_CLASS_SEND ? start_send(run, &end) : start_recv(run, &end);
    }
    return 0;
}

static int move_rank(struct run *run, uint32_t rank)
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

/* Says what the first rank that is not at its end waits for. */
static int check_ended(struct run *run)
{
    for (uint32_t rank = 0; rank < run->state->plan->ranks; rank++) {
        const struct rank_run *at = &run->ranks[rank];
        struct check_place place = {rank, at->walk.progress.received, 0};

        if (ibshift_walk_is_done(&at->walk)) {
            continue;
        }
        if (at->posted_count > 0 || at->messages != NULL) {
            const struct posted *end = at->posted_count > 0 ? &at->posted[0] : &at->messages->send;

            return check_fail(run->state, &end->place, "deadlock with window %u: waits %s rank %u",
                              at->walk.window,
                              at->posted_count > 0 ? "for a receive from" : "to send to",
                              end->step.peer);
        }
        return check_fail(run->state, &place, "deadlock with window %u: nothing may start",
                          at->walk.window);
    }
    return 0;
}

/* Until nothing moves: rank after rank as far as it comes, or one move of any of them. */
static int run_all(struct run *run)
{
    uint32_t ranks = run->state->plan->ranks;
    int rc = 0, moves;

    do {
        uint32_t first = pick(run, ranks);

        moves = 0;
        for (uint32_t i = 0; i < ranks && rc >= 0 && (run->random == 0 || moves == 0); i++) {
            uint32_t rank = (first + i) % ranks;

            if (run->random != 0) {
                moves += (rc = move_rank(run, rank)) > 0;
                continue;
            }
            while ((rc = start_one(run, rank)) > 0) {
                moves++;
            }
        }
    } while (rc >= 0 && moves > 0);
    return rc < 0 ? rc : check_ended(run);
}

static void free_messages(struct run *run)
{
    for (uint32_t rank = 0; rank < run->state->plan->ranks; rank++) {
        while (run->ranks[rank].messages != NULL) {
            struct message *message = run->ranks[rank].messages;

            run->ranks[rank].messages = message->next;
            free(message->data);
            free(message);
        }
    }
}

static int check_run(struct check_state *state)
{
    struct run run = {.state = state,
                      .random = state->check->seed == 0 ? 0 : state->check->seed * 2 + 1};
    uint32_t ranks = state->plan->ranks, window = state->check->window;
    bool barrier = state->alg->collective == IBSHIFT_BARRIER;
    int rc = -ENOMEM;

    run.ranks = malloc(ranks * sizeof(*run.ranks)); /* walks are begun, not cleared */
    run.posted = calloc((size_t)ranks * window, sizeof(*run.posted));
    run.known = barrier ? known_new(state) : NULL;
    if (run.ranks != NULL && run.posted != NULL && (!barrier || run.known != NULL)) {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            struct rank_run *at = &run.ranks[rank];

            at->messages = NULL;
            at->posted = run.posted + (size_t)rank * window;
            at->posted_count = at->buffered = 0;
            ibshift_walk_begin(&at->walk, &run.pages, state->alg, state->plan, rank, window);
        }
        rc = run_all(&run);
        free_messages(&run);
    }
    if (rc == 0 && barrier) {
        rc = known_expect(state, run.known);
    }
    known_free(run.known);
    free(run.posted);
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
    rc = rc == 0 ? check_pairs_layout(&state) : rc;
    if (rc == 0) {
        check_cells_fill(&state);
        rc = check_order_all(&state);
    }
    rc = rc == 0 ? check_run(&state) : rc;
    rc = rc == 0 ? check_cells_expect(&state) : rc;
    free(state.pairs);
    free(state.cells);
    free(state.layout);
    return rc;
}
