/* Where a walk stands, in 36 bytes: for those who walk thousands of ranks in turn with one struct
 * walk. What is in flight is not in the mark: the caller has it anyway and says it again. */
#ifndef IBSHIFT_PLAN_WALK_MARK_H
#define IBSHIFT_PLAN_WALK_MARK_H

#include "plan/walk.h"

struct ibshift_walk_mark {
    uint32_t round[IBSHIFT_CLASSES];
    uint32_t index[IBSHIFT_CLASSES];
    struct ibshift_progress progress;
    bool loaded[IBSHIFT_CLASSES];
};

void ibshift_walk_mark(const struct ibshift_walk *walk, struct ibshift_walk_mark *mark);

/* The walk has the same algorithm, plan and window as the one that was marked; nothing is in flight
 * until the caller has called ibshift_walk_fly() for each step that was. */
void ibshift_walk_resume(struct ibshift_walk *walk, uint32_t rank,
                         const struct ibshift_walk_mark *mark);

static inline void ibshift_walk_fly(struct ibshift_walk *walk, enum ibshift_class class,
                                    uint32_t round)
{
    walk->flight[class][walk->in_flight[class]++] = round;
}

#endif
