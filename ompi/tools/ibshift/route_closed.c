/*
 * The closed form of E. Zahavi et al., "Quasi fat trees for HPC clouds and their fault-resilient
 * closed-form routing", for all its trees at once.
 *
 * A destination carries the number q[l] that it has among the destinations which a switch of level
 * l sends up: q[1] is its place, and one level up, where the switches below dealt their
 * destinations out to `parents * shared` switches and those that share digits are merged again,
 *
 *   q[l + 1] = q[l] / (parents[l + 1] * shared[l + 1]) * shared[l] + (label of level l passed)
 *
 * which is (13) with (12), and (15) with (14) above cross-connections. Up: port q[l] mod ups[l].
 * Down: the same label and cable that the way up takes: (16), (17), (18). docs/routing.md derives
 * it.
 */
#include "route.h"
#include "route_closed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the formulas say of one LID, one element a level. */
typedef struct aim {
    uint32_t leaf;                                                     /* switch */
    uint16_t up[IBSHIFT_LEVELS_MAX + 2], down[IBSHIFT_LEVELS_MAX + 2]; /* index into the tables */
    uint8_t host_port;
} aim_t;

typedef struct closed {
    route_t *r;
    const route_tree_t *t;
    aim_t *aims; /* by LID; leaf IBSHIFT_NO_SWITCH: not a host's */
} closed_t;

static void set_aim(const route_tree_t *t, uint32_t leaf, uint64_t place, aim_t *aim)
{
    uint64_t q = place;
    unsigned way = 0, label = 0;

    aim->leaf = leaf;
    for (unsigned l = 1; l <= t->h; l++) {
        if (l > 1) {
            aim->down[l] = (uint16_t)(route_tree_digit(t, leaf, l) * t->ways[l] + way);
        }
        if (l < t->h) {
            unsigned copy, up = (unsigned)(q % t->ups[l]);
            unsigned fan = t->parents[l + 1] * t->shared[l + 1];

            aim->up[l] = (uint16_t)up;
            copy = up / t->parents[l + 1];
            way = label * t->cables[l + 1] + copy / t->shared[l + 1];
            q = q / fan * t->shared[l] + label;
            label = copy % t->shared[l + 1];
        }
    }
}

static void set_aims(closed_t *c)
{
    const route_tree_t *t = c->t;
    const ibshift_fabric_t *f = t->f;

    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t peer = f->ports[f->hosts[h]].peer, leaf = route_host_switch(f, h);

        for (unsigned lane = 0; lane < ibshift_host_lid_count(f, h); lane++) {
            aim_t *aim = &c->aims[ibshift_host_lid(f, h) + lane];

            set_aim(t, leaf, ((uint64_t)t->place[h] + lane) % t->places, aim);
            aim->host_port = f->ports[peer].number;
        }
    }
}

static int fill_rows(void *context, uint32_t first, uint32_t end)
{
    closed_t *c = context;
    const route_tree_t *t = c->t;
    ibshift_fabric_t *f = c->r->fabric;

    for (uint32_t s = first; s < end; s++) {
        const uint8_t *up = t->up + (size_t)s * t->up_stride;
        const uint8_t *down = t->down + (size_t)s * t->down_stride;
        unsigned l = t->level[s];
        const uint32_t *part = t->shape.down[l];
        uint8_t *row = f->lft + (size_t)s * f->lft_stride;

        for (uint32_t lid = 1; l != 0 && lid < f->lft_stride; lid++) {
            const aim_t *aim = &c->aims[lid];

            if (aim->leaf == IBSHIFT_NO_SWITCH) {
                continue;
            }
            if (part[aim->leaf] != part[s]) {
                row[lid] = up[aim->up[l]];
            } else {
                row[lid] = l > 1 ? down[aim->down[l]] : aim->host_port;
            }
        }
    }
    return 0;
}

int route_closed_form(route_t *r, const route_tree_t *t, ibshift_error_t *err)
{
    closed_t c = {.r = r, .t = t};

    c.aims = malloc((size_t)r->fabric->lft_stride * sizeof(*c.aims));
    if (c.aims == NULL || route_tree_order(t, &r->order, &r->order_count) != 0) {
        free(c.aims);
        return ibshift_fail(err, -ENOMEM, "no memory for %u hosts", r->fabric->host_count);
    }
    memset(c.aims, 0xff, (size_t)r->fabric->lft_stride * sizeof(*c.aims));
    set_aims(&c);
    route_parallel(r->threads, r->fabric->switch_count, fill_rows, &c);
    free(c.aims);
    return 0;
}
