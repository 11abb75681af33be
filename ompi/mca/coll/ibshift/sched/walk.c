#include "sched/walk.h"

#include <stddef.h>

/* Moves to the next step of the class in rounds <= last. */
static bool cursor_seek(struct ibshift_walk *walk, enum ibshift_class which, uint32_t last)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];

    while (cursor->round < walk->rounds && cursor->round <= last) {
        if (!cursor->loaded) {
            cursor->count =
                (uint32_t)walk->alg->emit(walk->plan, walk->rank, cursor->round, cursor->steps);
            cursor->index = 0;
            cursor->loaded = true;
        }
        while (cursor->index < cursor->count &&
               ibshift_step_class(&cursor->steps[cursor->index]) != which) {
            cursor->index++;
        }
        if (cursor->index < cursor->count) {
            return true;
        }
        cursor->round++;
        cursor->loaded = false;
    }
    return false;
}

static uint32_t oldest(const struct ibshift_walk *walk, enum ibshift_class which)
{
    uint32_t round = walk->cursor[which].round;

    for (uint32_t i = 0; i < walk->in_flight[which]; i++) {
        round = walk->flight[which][i] < round ? walk->flight[which][i] : round;
    }
    return round;
}

/* Local steps never run ahead of both others, so a plan with few of them is not searched to its end
 * for the next one. */
static void refresh(struct ibshift_walk *walk)
{
    uint32_t recv = walk->cursor[IBSHIFT_CLASS_RECV].round,
             send = walk->cursor[IBSHIFT_CLASS_SEND].round;
    uint32_t received = oldest(walk, IBSHIFT_CLASS_RECV);

    cursor_seek(walk, IBSHIFT_CLASS_LOCAL, recv > send ? recv : send);
    if (received > walk->cursor[IBSHIFT_CLASS_LOCAL].round) {
        received = walk->cursor[IBSHIFT_CLASS_LOCAL].round;
    }
    walk->progress.received = received;
    walk->progress.sent = oldest(walk, IBSHIFT_CLASS_SEND);
}

void ibshift_walk_begin(struct ibshift_walk *walk, const struct ibshift_alg *alg,
                        const struct ibshift_plan *plan, uint32_t rank, uint32_t window)
{
    walk->alg = alg;
    walk->plan = plan;
    walk->rank = rank;
    walk->rounds = alg->rounds(plan, rank);
    walk->window = window < 1 ? 1 : window > IBSHIFT_WINDOW_MAX ? IBSHIFT_WINDOW_MAX : window;
    for (int which = 0; which < IBSHIFT_CLASSES; which++) {
        walk->cursor[which].round = 0;
        walk->cursor[which].loaded = false;
    }
    for (int which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
        walk->in_flight[which] = 0;
        cursor_seek(walk, which, UINT32_MAX);
    }
    refresh(walk);
}

const struct ibshift_step *ibshift_walk_next(struct ibshift_walk *walk, enum ibshift_class which)
{
    const struct ibshift_cursor *cursor = &walk->cursor[which];
    const struct ibshift_step *step;

    if (!cursor->loaded ||
        (which != IBSHIFT_CLASS_LOCAL && walk->in_flight[which] == walk->window)) {
        return NULL;
    }
    step = &cursor->steps[cursor->index];
    return ibshift_step_is_ready(step, &walk->progress) ? step : NULL;
}

uint32_t ibshift_walk_start(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];
    uint32_t round = cursor->round;

    cursor->index++;
    if (which != IBSHIFT_CLASS_LOCAL) {
        walk->flight[which][walk->in_flight[which]++] = round;
        cursor_seek(walk, which, UINT32_MAX);
    }
    refresh(walk);
    return round;
}

void ibshift_walk_complete(struct ibshift_walk *walk, enum ibshift_class which, uint32_t round)
{
    uint32_t *flight = walk->flight[which];

    for (uint32_t i = 0; i < walk->in_flight[which]; i++) {
        if (flight[i] == round) {
            flight[i] = flight[--walk->in_flight[which]];
            break;
        }
    }
    refresh(walk);
}

bool ibshift_walk_is_done(const struct ibshift_walk *walk)
{
    return walk->progress.received == walk->rounds && walk->progress.sent == walk->rounds;
}
