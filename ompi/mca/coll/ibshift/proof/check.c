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

/* All ranks at once. No message is buffered: it goes as soon as both its ends have started. */

struct posted {
    struct ibshift_step step;
    struct check_place place;
    uint32_t flight;
};

struct rank_run {
    struct ibshift_walk walk;
    struct posted
        *waiting[IBSHIFT_CLASS_LOCAL]; /* started, and the other end has not; oldest first */
    uint32_t count[IBSHIFT_CLASS_LOCAL];
};

struct run {
    struct check_state *state;
    struct known *known; /* of a barrier */
    struct rank_run *ranks;
    struct posted *posted; /* [rank][class][window] */
    struct ibshift_pages pages;
};

static int deliver(struct run *run, const struct posted *from, const struct posted *to)
{
    const struct ibshift_step *send = &from->step, *recv = &to->step;
    const struct check_cell *cells =
        check_cell(run->state, from->place.rank, send->buf, send->first);
    int rc = 0;

    if (ibshift_step_key(send) != ibshift_step_key(recv) || send->count != recv->count) {
        return check_fail(run->state, &to->place,
                          "expects %u blocks under tag %u.%u from rank %u, which sends %u under "
                          "%u.%u",
                          recv->count, recv->tag, recv->part, from->place.rank, send->count,
                          send->tag, send->part);
    }
    if (run->known != NULL) {
        known_message(run->known, from->place.rank, send->need, to->place.rank, to->place.round);
    }
    for (uint32_t i = 0; i < recv->count && rc == 0; i++) {
        rc = check_cells_store(run->state, &to->place, recv, recv->first + i, &cells[i]);
    }
    ibshift_walk_complete(&run->ranks[from->place.rank].walk, IBSHIFT_CLASS_SEND, from->flight);
    ibshift_walk_complete(&run->ranks[to->place.rank].walk, IBSHIFT_CLASS_RECV, to->flight);
    return rc < 0 ? rc : 1;
}

/* With the oldest of the peer's other ends that wait for this rank; else it waits itself. */
static int start_message(struct run *run, enum ibshift_class which, const struct posted *end)
{
    enum ibshift_class other =
        which == IBSHIFT_CLASS_SEND ? IBSHIFT_CLASS_RECV : IBSHIFT_CLASS_SEND;
    struct rank_run *rank = &run->ranks[end->place.rank], *peer = &run->ranks[end->step.peer];
    struct posted *theirs = peer->waiting[other], found;

    for (uint32_t i = 0; i < peer->count[other]; i++) {
        if (theirs[i].step.peer == end->place.rank) {
            found = theirs[i];
            memmove(&theirs[i], &theirs[i + 1], (--peer->count[other] - i) * sizeof(theirs[0]));
            return which == IBSHIFT_CLASS_SEND ? deliver(run, end, &found)
                                               : deliver(run, &found, end);
        }
    }
    rank->waiting[which][rank->count[which]++] = *end;
    return 1;
}

/* The rank's next step; 1, or 0 when none may start. */
static int start_one(struct run *run, uint32_t rank)
{
    struct ibshift_walk *walk = &run->ranks[rank].walk;

    for (enum ibshift_class which = 0; which < IBSHIFT_CLASSES; which++) {
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
        return start_message(run, which, &end);
    }
    return 0;
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
        for (enum ibshift_class which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
            if (at->count[which] > 0) {
                const struct posted *end = &at->waiting[which][0];

                return check_fail(run->state, &end->place,
                                  "deadlock with window %u: waits %s rank %u", at->walk.window,
                                  which == IBSHIFT_CLASS_RECV ? "for a receive from" : "to send to",
                                  end->step.peer);
            }
        }
        return check_fail(run->state, &place, "deadlock with window %u: nothing may start",
                          at->walk.window);
    }
    return 0;
}

/* Until nothing moves: rank after rank as far as it comes. */
static int run_all(struct run *run)
{
    int rc = 0, moves;

    do {
        moves = 0;
        for (uint32_t rank = 0; rank < run->state->plan->ranks && rc >= 0; rank++) {
            while ((rc = start_one(run, rank)) > 0) {
                moves++;
            }
        }
    } while (rc >= 0 && moves > 0);
    return rc < 0 ? rc : check_ended(run);
}

static int check_run(struct check_state *state)
{
    struct run run = {.state = state};
    uint32_t ranks = state->plan->ranks, window = state->check->window;
    bool barrier = state->alg->collective == IBSHIFT_BARRIER;
    int rc = -ENOMEM;

    run.ranks = calloc(ranks, sizeof(*run.ranks));
    run.posted = calloc((size_t)ranks * window * IBSHIFT_CLASS_LOCAL, sizeof(*run.posted));
    run.known = barrier ? known_new(state) : NULL;
    if (run.ranks != NULL && run.posted != NULL && (!barrier || run.known != NULL)) {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            struct rank_run *at = &run.ranks[rank];

            for (uint32_t which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
                at->waiting[which] =
                    run.posted + ((size_t)rank * IBSHIFT_CLASS_LOCAL + which) * window;
            }
            ibshift_walk_begin(&at->walk, &run.pages, state->alg, state->plan, rank, window);
        }
        rc = run_all(&run);
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
