/*
 * The two forms in which a fabric orders an all-to-all. Both belong to the caller, are read by emit() only,
 * and do not change while a plan uses them. ibshift_order_check() and ibshift_stages_check() refuse
 * broken ones.
 */
#ifndef IBSHIFT_PLAN_ORDER_H
#define IBSHIFT_PLAN_ORDER_H

#include <stddef.h>
#include <stdint.h>

#define IBSHIFT_NO_RANK UINT32_MAX

/* Messages of a host in flight in an order: fewer are neither mixed nor in step. */
#define IBSHIFT_ORDER_FLIGHTS 16

/*
 * Places along the routing order. A place is a node; all have the same number of slots, one for
 * each rank that a node may carry. A place whose slots are all empty is a place keeper: its turn
 * passes unused.
 *
 *   rank_at[place * slots + slot]  the rank there, or IBSHIFT_NO_RANK
 *   slot_of[rank]                  its place * slots + slot
 *
 * In stage turn * places + k the rank in slot j of place i sends to slot (j + turn) % slots of place
 * (i + distance) % places, where the distance is k * step % places: it changes fastest, so that the
 * messages that a rank has in flight at a time go to as many nodes as it has messages. A step other
 * than 1 mixes near and far nodes among them (ibshift_order_distance). Three nodes, the middle one
 * with one rank only:
 *   places 3, slots 2, step 1, rank_at = { 4, 1,  0, NO_RANK,  2, 3 }, slot_of = { 2, 1, 4, 5, 0 }
 */
struct ibshift_order {
    uint32_t places;
    uint32_t slots;
    uint32_t step; /* has no divisor in common with places */
    uint32_t *rank_at;
    uint32_t *slot_of;
};

/*
 * A step near that share of the places, from 0 to 1. With the golden section the distances of any
 * few stages in a row are spread evenly over all that there are, so that the messages in flight use
 * all parts of the fabric alike, where distances in their order use the near ones first.
 */
#define IBSHIFT_ORDER_GOLDEN 0.6180339887498949
uint32_t ibshift_order_step(uint32_t places, double share);

static inline uint32_t ibshift_order_distance(const struct ibshift_order *order, uint32_t stage)
{
    return (uint32_t)((uint64_t)(stage % order->places) * order->step % order->places);
}

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

/* With arrays of its own, in which no rank has a slot yet; 0 or -ENOMEM. */
int ibshift_order_open(struct ibshift_order *order, uint32_t places, uint32_t slots,
                       uint32_t ranks);
void ibshift_order_free(struct ibshift_order *order);

/* 0, or -EINVAL with one line in why that names the first thing wrong. */
int ibshift_order_check(const struct ibshift_order *order, uint32_t ranks, char *why, size_t size);
int ibshift_stages_check(const struct ibshift_stages *stages, uint32_t ranks, char *why,
                         size_t size);

#endif
