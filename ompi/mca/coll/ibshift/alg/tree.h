/*
 * The k-nomial tree, base b = k + 1: the parent of v is v without its lowest digit that is not
 * zero; its children have one more digit, below that one. The subtree of v is [v, v + place), cut
 * off at P.
 */
#ifndef IBSHIFT_ALG_TREE_H
#define IBSHIFT_ALG_TREE_H

#include <stdint.h>

struct tree_seat {
    uint32_t
        place; /* value of v's lowest digit that is not zero; for 0, of the first digit beyond P */
    uint32_t below; /* digits below it: rounds in which v has children */
    uint32_t total; /* digits of P - 1: rounds of the whole tree */
};

static inline struct tree_seat tree_seat(uint32_t v, uint32_t ranks, uint32_t base)
{
    struct tree_seat seat = {1, 0, 0};

    while (seat.place < ranks && v % (seat.place * base) == 0) {
        seat.place *= base;
        seat.below++;
    }
    seat.total = seat.below;
    for (uint32_t place = seat.place; place < ranks; place *= base) {
        seat.total++;
    }
    return seat;
}

static inline uint32_t tree_parent(uint32_t v, struct tree_seat seat, uint32_t base)
{
    return v - v % (seat.place * base);
}

/* Value of the digit that v's children of level `level` add; 0 <= level < below. */
static inline uint32_t tree_place(struct tree_seat seat, uint32_t level, uint32_t base)
{
    for (uint32_t i = seat.below; i > level; i--) {
        seat.place /= base;
    }
    return seat.place;
}

/* The end of the subtree that begins at v. */
static inline uint32_t tree_end(uint32_t v, uint32_t place, uint32_t ranks)
{
    return v + place < ranks ? v + place : ranks;
}

#endif
