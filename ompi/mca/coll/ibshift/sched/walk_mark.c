#include "sched/walk_mark.h"

#include <string.h>

void ibshift_walk_mark(const struct ibshift_walk *walk, struct ibshift_walk_mark *mark)
{
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        mark->round[class] = walk->cursor[class].round;
        mark->index[class] = walk->cursor[class].index;
        mark->loaded[class] = walk->cursor[class].loaded;
    }
    mark->progress = walk->progress;
}

/* Emission is cheaper than keeping the steps; cursors in one round share it. */
static void load(struct ibshift_walk *walk, int class)
{
    struct ibshift_cursor *cursor = &walk->cursor[class];

    for (int other = 0; other < class; other++) {
        const struct ibshift_cursor *donor = &walk->cursor[other];

        if (donor->loaded && donor->round == cursor->round) {
            cursor->count = donor->count;
            memcpy(cursor->steps, donor->steps, donor->count * sizeof(donor->steps[0]));
            return;
        }
    }
    cursor->count = (uint32_t)walk->alg->emit(walk->plan, walk->rank, cursor->round, cursor->steps);
}

void ibshift_walk_resume(struct ibshift_walk *walk, uint32_t rank,
                         const struct ibshift_walk_mark *mark)
{
    walk->rank = rank;
    walk->rounds = walk->alg->rounds(walk->plan, rank);
    walk->progress = mark->progress;
    walk->plain = 0;
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        walk->cursor[class].round = mark->round[class];
        walk->cursor[class].index = mark->index[class];
        walk->cursor[class].loaded = mark->loaded[class];
        if (mark->loaded[class]) {
            load(walk, class);
        }
    }
    walk->in_flight[IBSHIFT_CLASS_RECV] = 0;
    walk->in_flight[IBSHIFT_CLASS_SEND] = 0;
}
