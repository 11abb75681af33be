/*
 * One rank on its way through its plan: a cursor for each class of steps, what is in flight, and
 * the rule of ready.h. The executor, the checker, the models and the simulator turn this crank:
 *
 *     ibshift_walk_begin(&walk, &pages, alg, plan, rank, window);
 *     while (!ibshift_walk_is_done(&walk)) {
 *         for each class c, until none of them moves:
 *             while ((step = ibshift_walk_next(&walk, c)) != NULL) {
 *                 post or do it (copy *step if it is needed later);
 *                 flight = ibshift_walk_start(&walk, c);
 *             }
 *         for each send or receive that ended:
 *             ibshift_walk_complete(&walk, c, its flight);
 *     }
 *
 * A local step is done before ibshift_walk_start() and is then complete. Starting and completing
 * anything may make steps of every class ready. No allocation; no pointer into itself.
 */
#ifndef IBSHIFT_PLAN_WALK_H
#define IBSHIFT_PLAN_WALK_H

#include "plan/alg.h"
#include "plan/ready.h"

enum {
    IBSHIFT_WINDOW_MAX = 256,
    IBSHIFT_PAGES = 4, /* a power of two: the three cursors are seldom four rounds apart */
};

#define IBSHIFT_NOT_IN_FLIGHT UINT32_MAX /* no round has this number */

/* Bytes of a vector up to which the receiver's grants stand in blocking calls that end on no rank
   before they have begun on all: those for its scratch. */
enum { IBSHIFT_STANDING_MOST = 64 * 1024 };

/* One round as emitted. */
struct ibshift_page {
    uint64_t walk; /* the number of the walk that it was emitted for; 0: of none */
    uint32_t round;
    uint64_t of_class[IBSHIFT_CLASSES]; /* a bit for each of its steps */
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
};

/*
 * The rounds that were emitted last, so that cursors in the same round need one emission. Walks
 * that are never turned at the same time share them, and each finds its own again or emits anew.
 * At first the number of walks, and of each page its walk and round, are zero.
 */
struct ibshift_pages {
    uint64_t walks; /* that have begun */
    struct ibshift_page page[IBSHIFT_PAGES];
};

struct ibshift_cursor {
    struct ibshift_step step; /* the next one of the class, when there is one */
    bool has_step;
    uint32_t round; /* all steps of the class in earlier rounds have started */
    uint32_t index; /* of step in its round */
    uint64_t later; /* a bit for each step of the class in this round behind step; else 0 */
};

/* The messages of a class that have started and not ended, by an index that they keep. */
struct ibshift_flights {
    uint32_t round[IBSHIFT_WINDOW_MAX]; /* IBSHIFT_NOT_IN_FLIGHT: the index is free */
    uint8_t step[IBSHIFT_WINDOW_MAX]; /* its index in the round; the next free one of a free one */
    uint32_t used;                    /* higher indices have never been taken */
    uint8_t free;                     /* the first free one, if one below used is free */
};

struct ibshift_walk {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;
    struct ibshift_pages *pages;
    uint64_t number; /* among those that have used the pages */
    uint32_t rank;
    uint32_t rounds;
    uint32_t window;         /* 1..IBSHIFT_WINDOW_MAX, of receives and of sends */
    uint32_t no_local_below; /* rounds from the local cursor's up to this one have no local step */
    struct ibshift_progress progress;
    uint32_t in_flight[IBSHIFT_CLASS_LOCAL];
    struct ibshift_cursor cursor[IBSHIFT_CLASSES];
    struct ibshift_flights flights[IBSHIFT_CLASS_LOCAL];
};

/* The plan has passed ibshift_alg_check() and outlives the walk, as the pages do; window is brought
 * within its bounds. */
void ibshift_walk_begin(struct ibshift_walk *walk, struct ibshift_pages *pages,
                        const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                        uint32_t rank, uint32_t window);

/* The step of the class that may start now, or NULL; valid until ibshift_walk_start() of the same
 * class. */
static inline const struct ibshift_step *ibshift_walk_next(const struct ibshift_walk *walk,
                                                           enum ibshift_class which)
{
    const struct ibshift_cursor *cursor = &walk->cursor[which];

    if (!cursor->has_step ||
        (which != IBSHIFT_CLASS_LOCAL && walk->in_flight[which] == walk->window)) {
        return NULL;
    }
    return ibshift_step_is_ready(&cursor->step, &walk->progress) ? &cursor->step : NULL;
}

/* What ibshift_walk_start() will return: below the window. */
static inline uint32_t ibshift_walk_next_flight(const struct ibshift_walk *walk,
                                                enum ibshift_class which)
{
    const struct ibshift_flights *flights = &walk->flights[which];

    return walk->in_flight[which] < flights->used ? flights->free : flights->used;
}

/* Starts the step that ibshift_walk_next() just gave. Returns the flight of a send or receive,
 * which ibshift_walk_complete() wants back. */
uint32_t ibshift_walk_start(struct ibshift_walk *walk, enum ibshift_class which);

/* A send or receive ended: its flight is free again. */
void ibshift_walk_complete(struct ibshift_walk *walk, enum ibshift_class which, uint32_t flight);

/* Starts a send or receive that is over at once: start and complete in one. */
void ibshift_walk_skip(struct ibshift_walk *walk, enum ibshift_class which);

static inline bool ibshift_walk_is_done(const struct ibshift_walk *walk)
{
    return walk->progress.received == walk->rounds && walk->progress.sent == walk->rounds;
}

/* The round of a flight < walk.flights[which].used, or IBSHIFT_NOT_IN_FLIGHT. */
static inline uint32_t ibshift_walk_flight_round(const struct ibshift_walk *walk,
                                                 enum ibshift_class which, uint32_t flight)
{
    return walk->flights[which].round[flight];
}

/* The step of a flight. Emits its round: for rare use. */
struct ibshift_step ibshift_walk_flight_step(const struct ibshift_walk *walk,
                                             enum ibshift_class which, uint32_t flight);

#endif
