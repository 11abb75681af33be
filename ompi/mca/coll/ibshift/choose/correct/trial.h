/* Correction of a choice by what calls have taken: a rival runs now and then in the place of the plan
 * that was chosen, and the one that takes less stays. Pure counting: who asks the same numbers gets
 * the same answers, so that all ranks run the same plan at each call. */
#ifndef IBSHIFT_CHOOSE_CORRECT_TRIAL_H
#define IBSHIFT_CHOOSE_CORRECT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    IBSHIFT_TRIAL_CALLS = 9, /* of each of the two: their lower quartile is compared */
    IBSHIFT_TRIAL_GAIN = 90, /* a rival must take less than so many hundredths */
};

enum ibshift_trial_turn {
    IBSHIFT_TRIAL_OWN,   /* measured: it comes just before a rival's */
    IBSHIFT_TRIAL_RIVAL, /* measured */
    IBSHIFT_TRIAL_IDLE,
};

struct ibshift_trial {
    uint32_t calls;
    uint32_t count[2];                   /* by turn */
    uint64_t ns[2][IBSHIFT_TRIAL_CALLS]; /* in ascending order */
};

/* The next call's turn: the rival's is each period-th one, the period being at least 2. */
enum ibshift_trial_turn ibshift_trial_next(struct ibshift_trial *trial, uint32_t period);

/* How long such a call took. */
void ibshift_trial_take(struct ibshift_trial *trial, enum ibshift_trial_turn turn, uint64_t ns);

/* Both have run often enough: the same on all ranks. */
bool ibshift_trial_is_full(const struct ibshift_trial *trial);

/* Of a full trial, in ns: what disturbs a call makes it longer, so less than half of the calls need
 * be free of it; and a single short one is that of a rank that came late. */
uint64_t ibshift_trial_quartile(const struct ibshift_trial *trial, enum ibshift_trial_turn turn);

/* From the sums of all ranks' quartiles: what a rank waits for late ones is in both. */
static inline bool ibshift_trial_is_better(uint64_t rival, uint64_t own)
{
    return rival * 100 < own * IBSHIFT_TRIAL_GAIN;
}

#endif
