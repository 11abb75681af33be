#include "plan/order.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ibshift_order_open(struct ibshift_order *order, uint32_t places, uint32_t slots, uint32_t ranks)
{
    size_t size = (size_t)places * slots * sizeof(*order->rank_at);

    *order = (struct ibshift_order){.places = places,
                                    .slots = slots,
                                    .step = ibshift_order_step(places, IBSHIFT_ORDER_GOLDEN),
                                    .rank_at = malloc(size + 1),
                                    .slot_of = malloc(ranks * sizeof(*order->slot_of) + 1)};
    if (order->rank_at == NULL || order->slot_of == NULL) {
        ibshift_order_free(order);
        return -ENOMEM;
    }
    memset(order->rank_at, 0xff, size);
    memset(order->slot_of, 0xff, ranks * sizeof(*order->slot_of));
    return 0;
}

void ibshift_order_free(struct ibshift_order *order)
{
    free(order->rank_at);
    free(order->slot_of);
    *order = (struct ibshift_order){0};
}

static int refuse(char *why, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return -EINVAL;
}

static bool has_common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a != 1;
}

uint32_t ibshift_order_step(uint32_t places, double share)
{
    uint32_t step = (uint32_t)(share * places + 0.5);

    while (step > 1 && has_common_divisor(step, places)) {
        step--;
    }
    return step > 0 ? step : 1;
}

int ibshift_order_check(const struct ibshift_order *o, uint32_t ranks, char *why, size_t size)
{
    uint64_t slots = (uint64_t)o->places * o->slots, taken = 0;

    if (o->places == 0 || o->slots == 0 || slots > UINT32_MAX) {
        return refuse(why, size, "an order of %u places with %u slots", o->places, o->slots);
    }
    if (has_common_divisor(o->places, o->step)) {
        return refuse(why, size, "steps of %u do not come to all %u places", o->step, o->places);
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t slot = o->slot_of[rank];

        if (slot >= slots || o->rank_at[slot] != rank) {
            return refuse(why, size, "rank %u is not on the slot %u that it claims", rank, slot);
        }
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        taken += o->rank_at[slot] != IBSHIFT_NO_RANK;
    }
    if (taken != ranks) {
        return refuse(why, size, "%llu slots are taken by %u ranks", (unsigned long long)taken,
                      ranks);
    }
    return 0;
}

/* Every other rank once in a row; `met` holds the last row that met each rank. */
static int check_row(const struct ibshift_stages *t, const uint32_t *row, uint32_t rank,
                     uint32_t ranks, uint32_t *met, uint32_t mark, char *why, size_t size)
{
    uint32_t peers = 0;

    for (uint32_t s = 0; s < t->stages; s++) {
        uint32_t peer = row[s];

        if (peer == IBSHIFT_NO_RANK) {
            continue;
        }
        if (peer >= ranks || peer == rank || met[peer] == mark) {
            return refuse(why, size, "rank %u, stage %u: peer %u %s", rank, s, peer,
                          peer >= ranks  ? "does not exist"
                          : peer == rank ? "is the rank itself"
                                         : "was met before");
        }
        met[peer] = mark;
        peers++;
    }
    if (peers != ranks - 1) {
        return refuse(why, size, "rank %u meets %u of %u peers", rank, peers, ranks - 1);
    }
    return 0;
}

/* With all rows at hand, what one sends in a stage the other receives in it. */
static int check_match(const struct ibshift_stages *t, uint32_t rank, char *why, size_t size)
{
    for (uint32_t s = 0; s < t->stages; s++) {
        uint32_t to = t->to[(size_t)rank * t->stages + s];

        if (to != IBSHIFT_NO_RANK && t->from[(size_t)to * t->stages + s] != rank) {
            return refuse(why, size, "stage %u: rank %u sends to %u, which does not expect it", s,
                          rank, to);
        }
    }
    return 0;
}

int ibshift_stages_check(const struct ibshift_stages *t, uint32_t ranks, char *why, size_t size)
{
    uint32_t *met = calloc((size_t)ranks + 1, sizeof(*met));
    int status = 0;

    if (met == NULL) {
        return -ENOMEM;
    }
    if (t->rows == 0 || t->first >= ranks || t->rows > ranks - t->first) {
        status =
            refuse(why, size, "rows %u to %u of %u ranks", t->first, t->first + t->rows, ranks);
    }
    for (uint32_t r = 0; r < t->rows && status == 0; r++) {
        size_t row = (size_t)r * t->stages;
        uint32_t mark = 2 * r + 1;

        status = check_row(t, t->to + row, t->first + r, ranks, met, mark, why, size);
        if (status == 0) {
            status = check_row(t, t->from + row, t->first + r, ranks, met, mark + 1, why, size);
        }
        if (status == 0 && t->rows == ranks) {
            status = check_match(t, r, why, size);
        }
    }
    free(met);
    return status;
}
