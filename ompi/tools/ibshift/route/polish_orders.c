/* Which order damaged tables are made for: places of hosts that are gone cost stages. */
#include "route/closed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_MOST 150000000 /* 300 MB */

enum keepers { KEEP_ALL, KEEP_ON_LEAVES, KEEP_NONE, KEEP_COUNT };

struct chooser {
    struct route_closed *c;
    const struct route_ways *w;
    uint32_t *place_of; /* [host] */
    uint8_t *before;    /* the tables as they came */
    uint8_t *best;      /* those that came out cheapest */
    uint64_t best_cost;
    uint32_t last_places; /* of the order tried before */
    enum keepers best_kept;
};

static bool has_host(const struct route *r, uint32_t first, unsigned count)
{
    for (uint32_t i = first; i < first + count; i++) {
        if (r->order[i] != IBSHIFT_NO_HOST) {
            return true;
        }
    }
    return false;
}

/* Drops the place keepers that are not kept; returns the number of places. */
static uint32_t compact(const struct route_closed *c, enum keepers kept, uint32_t *order)
{
    const struct route *r = c->r;
    unsigned block = c->t->children[1];
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->order_count; i++) {
        bool is_host = r->order[i] != IBSHIFT_NO_HOST;

        if (is_host || kept == KEEP_ALL ||
            (kept == KEEP_ON_LEAVES && has_host(r, i / block * block, block))) {
            order[count++] = r->order[i];
        }
    }
    return count;
}

static size_t table_bytes(const struct chooser *x)
{
    return (size_t)x->c->r->fabric->switch_count * x->c->r->fabric->lft_stride;
}

static int try_order(struct chooser *x, enum keepers kept, uint32_t *order)
{
    struct ibshift_fabric *f = x->c->r->fabric;
    uint32_t places = compact(x->c, kept, order);
    uint64_t cost = 0;
    int rc;

    if (places == x->last_places || (uint64_t)places * f->port_count > CELLS_MOST) {
        return 0;
    }
    x->last_places = places;
    for (uint32_t i = 0; i < places; i++) {
        if (order[i] != IBSHIFT_NO_HOST) {
            x->place_of[order[i]] = i;
        }
    }
    memcpy(f->lft, x->before, table_bytes(x));
    rc = route_polish(x->c, x->w, x->place_of, places, &cost);
    if (rc == 0 && cost < x->best_cost) {
        x->best_cost = cost;
        x->best_kept = kept;
        memcpy(x->best, f->lft, table_bytes(x));
    }
    return rc;
}

static int try_orders(struct chooser *x, uint32_t *order)
{
    struct route *r = x->c->r;
    int rc = 0;

    memcpy(x->before, r->fabric->lft, table_bytes(x));
    memcpy(x->best, r->fabric->lft, table_bytes(x));
    for (enum keepers kept = KEEP_ALL; rc == 0 && kept < KEEP_COUNT; kept++) {
        rc = try_order(x, kept, order);
    }
    memcpy(r->fabric->lft, x->best, table_bytes(x));
    r->order_count = compact(x->c, x->best_kept, order);
    memcpy(r->order, order, r->order_count * sizeof(*order));
    return rc;
}

/* Hosts without a place, or with other LIDs than the rest, are not counted: nothing is moved. */
static bool is_even(const struct route_tree *t)
{
    const struct ibshift_fabric *f = t->f;

    for (uint32_t h = 0; h < f->host_count; h++) {
        if (t->place[h] == ROUTE_NO_PLACE ||
            ibshift_host_lid_count(f, h) != ibshift_host_lid_count(f, 0)) {
            return false;
        }
    }
    return true;
}

int route_polish_orders(struct route_closed *c, const struct route_ways *w,
                        struct ibshift_error *err)
{
    struct chooser x = {.c = c, .w = w, .best_cost = UINT64_MAX};
    uint32_t *order;
    int rc = -ENOMEM;

    if (!is_even(c->t) || (uint64_t)c->t->f->host_count * c->t->f->port_count > CELLS_MOST) {
        return 0;
    }
    x.place_of = malloc(((size_t)c->t->f->host_count + 1) * sizeof(*x.place_of));
    x.before = malloc(table_bytes(&x) + 1);
    x.best = malloc(table_bytes(&x) + 1);
    order = malloc(((size_t)c->r->order_count + 1) * sizeof(*order));
    if (x.place_of != NULL && x.before != NULL && x.best != NULL && order != NULL) {
        rc = try_orders(&x, order);
    }
    free(x.place_of);
    free(x.before);
    free(x.best);
    free(order);
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory to count the flows of the shifts");
}
