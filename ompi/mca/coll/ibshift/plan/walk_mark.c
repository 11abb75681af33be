#include "plan/walk_mark.h"

void ibshift_walk_mark(const struct ibshift_walk *walk, struct ibshift_walk_mark *mark)
{
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        mark->round[class] = walk->cursor[class].round;
        mark->index[class] = walk->cursor[class].index;
        mark->loaded[class] = walk->cursor[class].loaded;
    }
    mark->progress = walk->progress;
}

void ibshift_walk_resume(struct ibshift_walk *walk, uint32_t rank,
                         const struct ibshift_walk_mark *mark)
{
    walk->rank = rank;
    walk->rounds = walk->alg->rounds(walk->plan, rank);
    walk->progress = mark->progress;
    ibshift_walk_clear(walk);
    for (int class = 0; class < IBSHIFT_CLASSES; class ++) {
        walk->cursor[class].round = mark->round[class];
        walk->cursor[class].index = mark->index[class];
        if (mark->loaded[class]) {
            ibshift_walk_load(walk, (enum ibshift_class) class);
        }
    }
    walk->in_flight[IBSHIFT_CLASS_RECV] = 0;
    walk->in_flight[IBSHIFT_CLASS_SEND] = 0;
}
