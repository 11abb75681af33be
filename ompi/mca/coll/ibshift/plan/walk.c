#include "plan/walk.h"

#include <stddef.h>
#include <string.h>

#define NO_ROUND UINT32_MAX

/* Remembers rounds without local steps, as sends and receives come by, to spare their emission. */
static void note_plain(struct ibshift_walk *walk, const struct ibshift_page *page)
{
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round;
    uint32_t plain = walk->plain > local ? walk->plain : local;

    if (page->round == plain && page->of_class[IBSHIFT_CLASS_LOCAL] == 0) {
        walk->plain = plain + 1;
    }
}

/* A page that no cursor is in; the one that asks is in none. */
static uint32_t free_page(const struct ibshift_walk *walk)
{
    uint32_t taken = 0;

    for (int which = 0; which < IBSHIFT_CLASSES; which++) {
        taken |= (uint32_t)walk->cursor[which].loaded << walk->cursor[which].page;
    }
    return (uint32_t)__builtin_ctz(~taken);
}

static void emit(struct ibshift_walk *walk, struct ibshift_page *page, uint32_t round)
{
    uint32_t count = walk->alg->emit(walk->plan, walk->rank, round, page->steps);

    static_assert(IBSHIFT_ROUND_STEPS <= 64, "a bit for each step of a round");
    memset(page->of_class, 0, sizeof(page->of_class));
    for (uint32_t i = 0; i < count; i++) {
        page->of_class[ibshift_step_class(&page->steps[i])] |= UINT64_C(1) << i;
    }
    page->round = round;
}

void ibshift_walk_load(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];
    uint32_t page = 0;

    while (page < IBSHIFT_CLASSES && walk->page[page].round != cursor->round) {
        page++;
    }
    if (page == IBSHIFT_CLASSES) {
        page = free_page(walk);
        emit(walk, &walk->page[page], cursor->round);
    }
    cursor->page = page;
    cursor->loaded = true;
}

void ibshift_walk_clear(struct ibshift_walk *walk)
{
    for (int which = 0; which < IBSHIFT_CLASSES; which++) {
        walk->cursor[which].loaded = false;
        walk->cursor[which].page = 0;
        walk->page[which].round = NO_ROUND;
    }
    walk->plain = 0;
}

/* Moves to the next step of the class in rounds < end. */
static void seek(struct ibshift_walk *walk, enum ibshift_class which, uint32_t end)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];

    for (; cursor->round < end; cursor->round++, cursor->loaded = false) {
        uint64_t left;

        if (!cursor->loaded) {
            ibshift_walk_load(walk, which);
            cursor->index = 0;
            note_plain(walk, &walk->page[cursor->page]);
        }
        left = cursor->index < IBSHIFT_ROUND_STEPS
                   ? walk->page[cursor->page].of_class[which] >> cursor->index
                   : 0;
        if (left != 0) {
            cursor->index += (uint32_t)__builtin_ctzll(left);
            return;
        }
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
    ibshift_walk_clear(walk);
    for (int which = 0; which < IBSHIFT_CLASSES; which++) {
        walk->cursor[which].round = 0;
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
