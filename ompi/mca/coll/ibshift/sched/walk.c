#include "sched/walk.h"

#include <stddef.h>

static bool has_local(const struct ibshift_cursor *cursor)
{
    for (uint32_t i = 0; i < cursor->count; i++) {
        if (ibshift_step_is_local(&cursor->steps[i])) {
            return true;
        }
    }
    return false;
}

/* Remembers rounds without local steps, as sends and receives come by, to spare their emission. */
static void note_plain(struct ibshift_walk *walk, const struct ibshift_cursor *cursor)
{
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round;
    uint32_t plain = walk->plain > local ? walk->plain : local;

    if (cursor->round == plain && !has_local(cursor)) {
        walk->plain = plain + 1;
    }
}

static void load(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];

    cursor->count = (uint32_t)walk->alg->emit(walk->plan, walk->rank, cursor->round, cursor->steps);
    cursor->index = 0;
    cursor->loaded = true;
    if (which != IBSHIFT_CLASS_LOCAL) {
        note_plain(walk, cursor);
    }
}

/* Moves to the next step of the class in rounds < end. */
static void seek(struct ibshift_walk *walk, enum ibshift_class which, uint32_t end)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];

    while (cursor->round < end) {
        if (!cursor->loaded) {
            load(walk, which);
        }
        while (cursor->index < cursor->count &&
               ibshift_step_class(&cursor->steps[cursor->index]) != which) {
            cursor->index++;
        }
        if (cursor->index < cursor->count) {
            return;
        }
        cursor->round++;
        cursor->loaded = false;
    }
}

static uint32_t oldest(const struct ibshift_walk *walk, enum ibshift_class which)
{
    uint32_t round = walk->cursor[which].round;

    for (uint32_t i = 0; i < walk->in_flight[which]; i++) {
        round = walk->flight[which][i] < round ? walk->flight[which][i] : round;
    }
    return round;
}

static void refresh_received(struct ibshift_walk *walk)
{
    uint32_t received = oldest(walk, IBSHIFT_CLASS_RECV);
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round;

    walk->progress.received = received < local ? received : local;
}

/* Local steps never run ahead of both others, so a plan with few of them is not searched to its end
 * for the next one. True when the cursor came to another round. */
static bool seek_local(struct ibshift_walk *walk)
{
    struct ibshift_cursor *cursor = &walk->cursor[IBSHIFT_CLASS_LOCAL];
    uint32_t recv = walk->cursor[IBSHIFT_CLASS_RECV].round,
             send = walk->cursor[IBSHIFT_CLASS_SEND].round, before = cursor->round;
    uint32_t end = recv > send ? recv : send;

    end = end < walk->rounds ? end + 1 : walk->rounds;
    if (!cursor->loaded && cursor->round < walk->plain) {
        cursor->round = walk->plain < end ? walk->plain : end;
    }
    seek(walk, IBSHIFT_CLASS_LOCAL, end);
    return cursor->round != before;
}

void ibshift_walk_begin(struct ibshift_walk *walk, const struct ibshift_alg *alg,
                        const struct ibshift_plan *plan, uint32_t rank, uint32_t window)
{
    walk->alg = alg;
    walk->plan = plan;
    walk->rank = rank;
    walk->rounds = alg->rounds(plan, rank);
    walk->window = window < 1 ? 1 : window > IBSHIFT_WINDOW_MAX ? IBSHIFT_WINDOW_MAX : window;
    walk->plain = 0;
    for (int which = 0; which < IBSHIFT_CLASSES; which++) {
        walk->cursor[which].round = 0;
        walk->cursor[which].loaded = false;
    }
    for (int which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
        walk->in_flight[which] = 0;
        seek(walk, which, walk->rounds);
    }
    seek_local(walk);
    refresh_received(walk);
    walk->progress.sent = oldest(walk, IBSHIFT_CLASS_SEND);
}

/* A step that starts was the next of its class and is then in flight: it moves no prefix, but may
 * let the local cursor go on, and that one does. */
uint32_t ibshift_walk_start(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];
    uint32_t round = cursor->round;

    cursor->index++;
    if (which != IBSHIFT_CLASS_LOCAL) {
        walk->flight[which][walk->in_flight[which]++] = round;
        seek(walk, which, walk->rounds);
        if (cursor->round == round) {
            return round;
        }
    }
    if (seek_local(walk)) {
        refresh_received(walk);
    }
    return round;
}

static void refresh(struct ibshift_walk *walk, enum ibshift_class which)
{
    if (which == IBSHIFT_CLASS_SEND) {
        walk->progress.sent = oldest(walk, IBSHIFT_CLASS_SEND);
    } else {
        refresh_received(walk);
    }
}

void ibshift_walk_complete(struct ibshift_walk *walk, enum ibshift_class which, uint32_t round)
{
    uint32_t *flight = walk->flight[which];
    uint32_t prefix = which == IBSHIFT_CLASS_SEND ? walk->progress.sent : walk->progress.received;

    for (uint32_t i = 0; i < walk->in_flight[which]; i++) {
        if (flight[i] == round) {
            flight[i] = flight[--walk->in_flight[which]];
            break;
        }
    }
    if (round == prefix) {
        refresh(walk, which);
    }
}

void ibshift_walk_skip(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];
    uint32_t round = cursor->round;

    cursor->index++;
    seek(walk, which, walk->rounds);
    if (cursor->round != round) {
        seek_local(walk);
        refresh(walk, IBSHIFT_CLASS_RECV);
        refresh(walk, which);
    }
}
