/*
 * The k-nomial tree, base b = k + 1: the parent of v is v without its lowest digit that is not
 * zero; its children have one more digit, below that one. The subtree of v is [v, v + place), cut
 * off at P.
 */
#ifndef IBSHIFT_ALG_TREE_H
#define IBSHIFT_ALG_TREE_H

#include "plan/alg_emit.h"

struct tree_seat {
    uint32_t place; /* value of v's lowest digit that is not zero; for 0, of the first beyond P */
    uint32_t below; /* digits below it: rounds in which v has children */
    uint32_t total; /* digits of P - 1: rounds of the whole tree */
};

static inline struct tree_seat tree_seat(uint32_t v, uint32_t ranks, uint32_t base)
{
    struct tree_seat seat = {1, 0, emit_digits(ranks, base)};

    if (base == 2) {
        seat.below = v != 0 ? (uint32_t)__builtin_ctz(v) : seat.total;
        seat.place = UINT32_C(1) << seat.below;
        return seat;
    }
    for (uint32_t rest = v; seat.below < seat.total; seat.below++, seat.place *= base) {
        uint32_t next = emit_quotient(rest, base);

        if (next * base != rest) {
            break;
        }
        rest = next;
    }
    return seat;
}

static inline uint32_t tree_parent(uint32_t v, struct tree_seat seat, uint32_t base)
{
    return base == 2 ? v - seat.place : v - v % (seat.place * base);
}

/* Value of the digit that a child of level `level` adds to its parent. */
static inline uint32_t tree_place(uint32_t level, uint32_t base)
{
    return emit_power(base, level);
}

/* The end of the subtree that begins at v. */
static inline uint32_t tree_end(uint32_t v, uint32_t place, uint32_t ranks)
{
    return v + place < ranks ? v + place : ranks;
}

#endif
