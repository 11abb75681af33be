/*
 * All ranks of a plan on their way through it, for who turns them in turn: each is where walk.h has one, by the same rule of
 * ready.h. A round is emitted once, when its rank comes to it, and goes when all of it is over; what is in flight the caller knows by
 * its round. Another thread needs its own.
 */
#ifndef IBSHIFT_PLAN_WALKS_H
#define IBSHIFT_PLAN_WALKS_H

#include <stddef.h>

#include "plan/alg.h"
#include "plan/ready.h"

/* From its emission until all of it is over. */
struct ibshift_walks_round {
    uint32_t at; /* its first step */
    uint8_t count;
    uint8_t left[IBSHIFT_CLASSES]; /* steps that are not complete */
    bool is_emitted;
};

struct ibshift_walks_cursor {
    uint64_t later;        /* a bit for each step of the class in this round behind the next one */
    uint32_t round, index; /* of the next step; without one, the next round to look at */
    bool has_step;
};

struct ibshift_walks_rank {
    struct ibshift_walks_round *all; /* its rounds */
    uint32_t rounds, over;           /* over: rounds before it have gone */
    uint32_t in_flight[IBSHIFT_CLASS_LOCAL];
    struct ibshift_progress progress;
    struct ibshift_walks_cursor cursor[IBSHIFT_CLASSES];
};

/* All zero at first; it may begin again and again, and keeps its memory for that. */
struct ibshift_walks {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;
    uint32_t window;
    bool lacks_memory; /* for a round, which then has no steps */
    struct ibshift_walks_rank *ranks;
    struct ibshift_walks_round *rounds;
    struct ibshift_step *steps;
    size_t ranks_room, rounds_room, steps_room, steps_count;
    /* By count: 1 + where so many steps were; what that was for the one before is in the first's need. */
    uint32_t gone[IBSHIFT_ROUND_STEPS + 1];
};

/* The plan has passed ibshift_alg_check() and outlives it; window as of a walk. 0 or -ENOMEM; each rank still has to begin. */
int ibshift_walks_begin(struct ibshift_walks *walks, const struct ibshift_alg *alg,
                        const struct ibshift_plan *plan, uint32_t window);
void ibshift_walks_begin_rank(struct ibshift_walks *walks, uint32_t rank);
void ibshift_walks_free(struct ibshift_walks *walks);

/* The steps of a round that is not over, perhaps one that its rank has not come to; until the next call that changes anything. */
const struct ibshift_step *ibshift_walks_look(struct ibshift_walks *walks, uint32_t rank,
                                              uint32_t round, uint32_t *count);

/* The step of the class that comes next, ready or not, or NULL; until the next call that changes anything. */
static inline const struct ibshift_step *
ibshift_walks_coming(const struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which)
{
    const struct ibshift_walks_cursor *cursor = &walks->ranks[rank].cursor[which];

    return cursor->has_step
               ? &walks->steps[walks->ranks[rank].all[cursor->round].at + cursor->index]
               : NULL;
}

/* As ibshift_walk_next(). */
static inline const struct ibshift_step *ibshift_walks_next(const struct ibshift_walks *walks,
                                                            uint32_t rank, enum ibshift_class which)
{
    const struct ibshift_walks_rank *walk = &walks->ranks[rank];
    const struct ibshift_step *step = ibshift_walks_coming(walks, rank, which);

    return step == NULL ||
                   (which != IBSHIFT_CLASS_LOCAL && walk->in_flight[which] == walks->window) ||
                   !ibshift_step_is_ready(step, &walk->progress)
               ? NULL
               : step;
}

/* Starts the step that ibshift_walks_next() just gave; a local one is then complete. */
void ibshift_walks_start(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which);
/* A send or receive of that round ended. */
void ibshift_walks_complete(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which,
                            uint32_t round);

static inline bool ibshift_walks_are_done(const struct ibshift_walks *walks, uint32_t rank)
{
    const struct ibshift_walks_rank *walk = &walks->ranks[rank];

    return walk->progress.received == walk->rounds && walk->progress.sent == walk->rounds;
}

#endif
