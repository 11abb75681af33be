#include "plan/walk.h"

#include <string.h>

static void emit(const struct ibshift_walk *walk, struct ibshift_page *page, uint32_t round)
{
    uint32_t count = walk->alg->emit(walk->plan, walk->rank, round, page->steps);

    static_assert(IBSHIFT_ROUND_STEPS <= 64, "a bit for each step of a round");
    memset(page->of_class, 0, sizeof(page->of_class));
    for (uint32_t i = 0; i < count; i++) {
        page->of_class[ibshift_step_class(&page->steps[i])] |= UINT64_C(1) << i;
    }
    page->walk = walk->number;
    page->round = round;
}

static const struct ibshift_page *page_of(const struct ibshift_walk *walk, uint32_t round)
{
    struct ibshift_page *page = &walk->pages->page[round % IBSHIFT_PAGES];

    if (page->round != round || page->walk != walk->number) {
        emit(walk, page, round);
    }
    return page;
}

/* Remembers rounds without local steps, as sends and receives come by, to spare their emission. */
static void note_no_local(struct ibshift_walk *walk, const struct ibshift_page *page)
{
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round;
    uint32_t below = walk->no_local_below > local ? walk->no_local_below : local;

    if (page->round == below && page->of_class[IBSHIFT_CLASS_LOCAL] == 0) {
        walk->no_local_below = below + 1;
    }
}

/* Moves to the next step of the class in rounds < end, unless the cursor is at one. */
static void seek(struct ibshift_walk *walk, enum ibshift_class which, uint32_t end)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];

    while (!cursor->has_step && cursor->round < end) {
        const struct ibshift_page *page = page_of(walk, cursor->round);

        if (cursor->later == 0) {
            cursor->later = page->of_class[which];
            note_no_local(walk, page);
        }
        if (cursor->later == 0) {
            cursor->round++;
            continue;
        }
        cursor->index = (uint32_t)__builtin_ctzll(cursor->later);
        cursor->later &= cursor->later - 1;
        cursor->step = page->steps[cursor->index];
        cursor->has_step = true;
    }
}

/* The cursor's step is over. */
static void leave_step(struct ibshift_cursor *cursor)
{
    cursor->has_step = false;
    cursor->round += cursor->later == 0;
}

static uint32_t oldest(const struct ibshift_walk *walk, enum ibshift_class which)
{
    const struct ibshift_flights *flights = &walk->flights[which];
    uint32_t round = walk->cursor[which].round;

    for (uint32_t i = 0; i < flights->used; i++) {
        round = flights->round[i] < round ? flights->round[i] : round;
    }
    return round;
}

static void refresh_received(struct ibshift_walk *walk)
{
    uint32_t received = oldest(walk, IBSHIFT_CLASS_RECV);
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round;

    walk->progress.received = received < local ? received : local;
}

static void refresh(struct ibshift_walk *walk, enum ibshift_class which)
{
    if (which == IBSHIFT_CLASS_SEND) {
        walk->progress.sent = oldest(walk, IBSHIFT_CLASS_SEND);
    } else {
        refresh_received(walk);
    }
}

/* Local steps never run ahead of both others, so a plan with few of them is not searched to its end
 * for the next one. True when the cursor came to another round than `before`. */
static bool seek_local(struct ibshift_walk *walk, uint32_t before)
{
    struct ibshift_cursor *cursor = &walk->cursor[IBSHIFT_CLASS_LOCAL];
    uint32_t recv = walk->cursor[IBSHIFT_CLASS_RECV].round,
             send = walk->cursor[IBSHIFT_CLASS_SEND].round;
    uint32_t end = recv > send ? recv : send;

    end = end < walk->rounds ? end + 1 : walk->rounds;
    if (!cursor->has_step && cursor->later == 0 && cursor->round < walk->no_local_below) {
        cursor->round = walk->no_local_below < end ? walk->no_local_below : end;
    }
    seek(walk, IBSHIFT_CLASS_LOCAL, end);
    return cursor->round != before;
}

static void forget_flights(struct ibshift_walk *walk)
{
    for (int which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
        walk->in_flight[which] = 0;
        walk->flights[which].used = 0;
    }
}

/* What the pages hold is another walk's from now on. */
static void take_number(struct ibshift_walk *walk)
{
    walk->number = ++walk->pages->walks;
    walk->no_local_below = 0;
}

void ibshift_walk_begin(struct ibshift_walk *walk, struct ibshift_pages *pages,
                        const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                        uint32_t rank, uint32_t window)
{
    walk->alg = alg;
    walk->plan = plan;
    walk->pages = pages;
    walk->rank = rank;
    walk->rounds = alg->rounds(plan, rank);
    walk->window = window < 1 ? 1 : window > IBSHIFT_WINDOW_MAX ? IBSHIFT_WINDOW_MAX : window;
    take_number(walk);
    forget_flights(walk);
    for (int which = 0; which < IBSHIFT_CLASSES; which++) {
        walk->cursor[which].has_step = false;
        walk->cursor[which].round = 0;
        walk->cursor[which].later = 0;
    }
    seek(walk, IBSHIFT_CLASS_RECV, walk->rounds);
    seek(walk, IBSHIFT_CLASS_SEND, walk->rounds);
    seek_local(walk, 0);
    refresh_received(walk);
    walk->progress.sent = walk->cursor[IBSHIFT_CLASS_SEND].round;
}

/* Returns the flight. */
static uint32_t fly(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_flights *flights = &walk->flights[which];
    uint32_t flight = ibshift_walk_next_flight(walk, which);

    if (flight == flights->used) {
        flights->used++;
    } else {
        flights->free = flights->step[flight];
    }
    flights->round[flight] = walk->cursor[which].round;
    flights->step[flight] = (uint8_t)walk->cursor[which].index;
    walk->in_flight[which]++;
    return flight;
}

/* A step that starts was the next of its class and is then in flight: it moves no prefix, but may
 * let the local cursor go on, and that one does. */
uint32_t ibshift_walk_start(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round, round = cursor->round, flight = 0;

    if (which != IBSHIFT_CLASS_LOCAL) {
        flight = fly(walk, which);
        leave_step(cursor);
        seek(walk, which, walk->rounds);
        if (cursor->round == round) {
            return flight;
        }
    } else {
        leave_step(cursor);
    }
    if (seek_local(walk, local)) {
        refresh_received(walk);
    }
    return flight;
}

void ibshift_walk_complete(struct ibshift_walk *walk, enum ibshift_class which, uint32_t flight)
{
    struct ibshift_flights *flights = &walk->flights[which];
    uint32_t prefix = which == IBSHIFT_CLASS_SEND ? walk->progress.sent : walk->progress.received;
    uint32_t round = flights->round[flight];

    flights->round[flight] = IBSHIFT_NOT_IN_FLIGHT;
    flights->step[flight] = flights->free;
    flights->free = (uint8_t)flight;
    if (--walk->in_flight[which] == 0) {
        flights->used = 0;
    }
    if (round == prefix) {
        refresh(walk, which);
    }
}

void ibshift_walk_skip(struct ibshift_walk *walk, enum ibshift_class which)
{
    struct ibshift_cursor *cursor = &walk->cursor[which];
    uint32_t local = walk->cursor[IBSHIFT_CLASS_LOCAL].round, round = cursor->round;

    leave_step(cursor);
    seek(walk, which, walk->rounds);
    if (cursor->round != round) {
        seek_local(walk, local);
        refresh(walk, IBSHIFT_CLASS_RECV);
        refresh(walk, which);
    }
}

struct ibshift_step ibshift_walk_flight_step(const struct ibshift_walk *walk,
                                             enum ibshift_class which, uint32_t flight)
{
    const struct ibshift_flights *flights = &walk->flights[which];
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    walk->alg->emit(walk->plan, walk->rank, flights->round[flight], steps);
    return steps[flights->step[flight]];
}
