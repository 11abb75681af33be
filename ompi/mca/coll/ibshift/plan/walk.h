/*
 * One rank on its way through its plan: a cursor for each class of steps, what is in flight, and
 * the rule of ready.h. The executor, the checker, the models and the simulator turn this crank:
 *
 *     ibshift_walk_begin(&walk, alg, plan, rank, window);
 *     while (!ibshift_walk_is_done(&walk)) {
 *         for each class c, until none of them moves:
 *             while ((step = ibshift_walk_next(&walk, c)) != NULL) {
 *                 post or do it (copy *step if it is needed later);
 *                 round = ibshift_walk_start(&walk, c);
 *             }
 *         for each send or receive that ended:
 *             ibshift_walk_complete(&walk, c, its round);
 *     }
 *
 * A local step is done before ibshift_walk_start() and is then complete. Starting and completing
 * anything may make steps of every class ready. No allocation; about 8 KiB, no pointer into itself.
 */
#ifndef IBSHIFT_PLAN_WALK_H
#define IBSHIFT_PLAN_WALK_H

#include "plan/alg.h"
#include "plan/ready.h"

enum { IBSHIFT_WINDOW_MAX = 256 };

/* One round as emitted; cursors that are in the same round share it. */
struct ibshift_page {
    uint32_t round;
    uint64_t of_class[IBSHIFT_CLASSES]; /* a bit for each of its steps */
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
};

struct ibshift_cursor {
    uint32_t round; /* all steps of the class in earlier rounds have started */
    uint32_t index;
    uint32_t page; /* once loaded */
    bool loaded;
};

struct ibshift_walk {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;
    uint32_t rank;
    uint32_t rounds;
    uint32_t window; /* 1..IBSHIFT_WINDOW_MAX, of receives and of sends */
    uint32_t plain;  /* rounds from the local cursor's up to this one have no local step */
    struct ibshift_progress progress;
    uint32_t in_flight[IBSHIFT_CLASS_LOCAL];
    uint32_t flight[IBSHIFT_CLASS_LOCAL][IBSHIFT_WINDOW_MAX]; /* their rounds, in no order */
    struct ibshift_cursor cursor[IBSHIFT_CLASSES];
    struct ibshift_page page[IBSHIFT_CLASSES];
};

/* The plan has passed ibshift_alg_check() and outlives the walk; window is brought within its
 * bounds. */
void ibshift_walk_begin(struct ibshift_walk *walk, const struct ibshift_alg *alg,
                        const struct ibshift_plan *plan, uint32_t rank, uint32_t window);

/* The next step of a class whose cursor is loaded, ready or not. */
static inline const struct ibshift_step *ibshift_walk_at(const struct ibshift_walk *walk,
                                                         enum ibshift_class which)
{
    const struct ibshift_cursor *cursor = &walk->cursor[which];

    return &walk->page[cursor->page].steps[cursor->index];
}

/* No cursor is loaded, no page is filled. */
void ibshift_walk_clear(struct ibshift_walk *walk);

/* Emits the round that the cursor is in, unless another cursor has it. */
void ibshift_walk_load(struct ibshift_walk *walk, enum ibshift_class which);

/* The step of the class that may start now, or NULL; valid until ibshift_walk_start() of the same
 * class. */
static inline const struct ibshift_step *ibshift_walk_next(const struct ibshift_walk *walk,
                                                           enum ibshift_class which)
{
    const struct ibshift_step *step;

    if (!walk->cursor[which].loaded ||
        (which != IBSHIFT_CLASS_LOCAL && walk->in_flight[which] == walk->window)) {
        return NULL;
    }
    step = ibshift_walk_at(walk, which);
    return ibshift_step_is_ready(step, &walk->progress) ? step : NULL;
}

/* Starts the step that ibshift_walk_next() just gave; returns its round, which
 * ibshift_walk_complete() wants back. */
uint32_t ibshift_walk_start(struct ibshift_walk *walk, enum ibshift_class which);

/* A send or receive of that round ended. */
void ibshift_walk_complete(struct ibshift_walk *walk, enum ibshift_class which, uint32_t round);

/* Starts a send or receive that is over at once: start and complete in one. */
void ibshift_walk_skip(struct ibshift_walk *walk, enum ibshift_class which);

static inline bool ibshift_walk_is_done(const struct ibshift_walk *walk)
{
    return walk->progress.received == walk->rounds && walk->progress.sent == walk->rounds;
}

#endif
