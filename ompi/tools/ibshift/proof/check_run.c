#include "proof/check_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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

static int run_all(struct run *run)
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

int check_run(struct check_state *state)
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
        rc = run_all(&run);
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
