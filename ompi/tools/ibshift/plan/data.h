/*
 * What each rank holds before and after each round of a plan.
 *
 * All ranks walk the plan together, a round of the literature (a tag) at a time: first the local
 * steps that can run, then the messages with that tag, then what these make possible.
 */
#ifndef IBSHIFT_PLAN_DATA_H
#define IBSHIFT_PLAN_DATA_H

#include "plan/alg.h"
#include "plan/walk.h"

/* One block of a buffer. */
struct plan_cell {
    uint64_t from;  /* ranks whose contribution it has, as bits; 0: nothing yet */
    uint32_t block; /* which block (owner, destination or piece) */
    uint32_t stage; /* in which it came here */
};

struct plan_buffer {
    uint32_t count;
    struct plan_cell *cells;
};

struct plan_data {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;                /* at most 64 ranks */
    struct plan_buffer (*buffers)[IBSHIFT_BUFFERS]; /* of each rank */
    struct ibshift_walk *walks;
    struct ibshift_pages pages;
    struct plan_receive *posted; /* room for all that may be in flight */
    uint32_t posted_count;
    uint32_t stage;    /* 0 before the first round */
    uint32_t next_tag; /* UINT32_MAX: no more messages */
    uint32_t moved;    /* messages and local steps of this stage */
    uint32_t messages; /* of this stage */
};

/* The data before the first round: 0 or -ENOMEM; plan_data_end() also then. */
int plan_data_begin(struct plan_data *data, const struct ibshift_alg *alg,
                    const struct ibshift_plan *plan);
void plan_data_end(struct plan_data *data);

/* Goes on by one round: 1 when something moved, 0 when all is done, or -EDEADLK when nothing can move. */
int plan_data_step(struct plan_data *data);

#endif
