/*
 * The two ways a fabric orders an all-to-all. Both belong to the caller, are read by emit() only,
 * and do not change while a plan uses them. ibshift_order_check() and ibshift_stages_check() refuse
 * broken ones.
 */
#ifndef IBSHIFT_PLAN_ORDER_H
#define IBSHIFT_PLAN_ORDER_H

#include <stddef.h>
#include <stdint.h>

#define IBSHIFT_NO_RANK UINT32_MAX

/*
 * Places along the routing order. A place is a node; all have the same number of slots, one for
 * each rank that a node may carry. A place whose slots are all empty is a place keeper: its turn
 * passes unused.
 *
 *   rank_at[place * slots + slot]  the rank there, or IBSHIFT_NO_RANK
 *   seat_of[rank]                  its place * slots + slot
 *
 * In stage turn * places + distance the rank in slot j of place i sends to slot (j + turn) % slots
 * of place (i + distance) % places: the distance changes fastest, so that the messages that a rank
 * has in flight at a time go to as many nodes as it has messages. Three nodes, the middle one with one rank only:
 *   places 3, slots 2, rank_at = { 4, 1,  0, NO_RANK,  2, 3 }, seat_of = { 2, 1, 4, 5, 0 }
 */
struct ibshift_order {
    uint32_t places;
    uint32_t slots;
    const uint32_t *rank_at;
    const uint32_t *seat_of;
};

/*
 * A schedule as a table. Row r is rank first + r, so that a rank may hold its own row only (first =
 * rank, rows = 1); the checker and the fabric need all rows. Every other rank appears exactly once
 * in a rank's row of `to`, and once in its row of `from`.
 *
 *   to[r * stages + s]    the rank that it sends to in stage s, or IBSHIFT_NO_RANK
 *   from[r * stages + s]  the rank that it receives from, or IBSHIFT_NO_RANK
 */
struct ibshift_stages {
    uint32_t stages;
    uint32_t first;
    uint32_t rows;
    const uint32_t *to;
    const uint32_t *from;
};

/* 0, or -EINVAL with one line in why that names the first thing wrong. */
int ibshift_order_check(const struct ibshift_order *order, uint32_t ranks, char *why, size_t size);
int ibshift_stages_check(const struct ibshift_stages *stages, uint32_t ranks, char *why,
                         size_t size);

#endif
