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
#include "route/closed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void aim_up(const struct route_tree *t, uint64_t place, struct route_aim *aim)
{
    uint64_t q = place;
    unsigned label = 0;

    for (unsigned l = 1; l < t->h; l++) {
        unsigned up = (unsigned)(q % t->ups[l]);

        aim->up[l] = (uint16_t)up;
        q = q / (t->parents[l + 1] * t->shared[l + 1]) * t->shared[l] + label;
        label = up / t->parents[l + 1] % t->shared[l + 1];
    }
}

void route_aim_down(const struct route_tree *t, struct route_aim *aim)
{
    unsigned label = 0;

    for (unsigned l = 2; l <= t->h; l++) {
        unsigned copy = aim->up[l - 1] / t->parents[l];
        unsigned way = label * t->cables[l] + copy / t->shared[l];
        unsigned child = route_tree_digit(t, aim->leaf, l);

        aim->down[l] = (uint16_t)(child < t->children[l] ? child * t->ways[l] + way : 0);
        label = copy % t->shared[l];
    }
}

static void set_aims(struct route_closed *c)
{
    const struct route_tree *t = c->t;
    const struct ibshift_fabric *f = t->f;
    uint32_t next = t->places;

    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t leaf = route_host_switch(f, h);
        uint64_t place = t->place[h] != ROUTE_NO_PLACE ? t->place[h] : next++;

        for (unsigned lane = 0; lane < ibshift_host_lid_count(f, h); lane++) {
            struct route_aim *aim = &c->aims[ibshift_host_lid(f, h) + lane];

            aim->leaf = leaf;
            aim->host_port = f->ports[f->ports[f->hosts[h]].peer].number;
            aim_up(t, (place + lane) % t->places, aim);
            route_aim_down(t, aim);
            aim->down[1] = aim->host_port;
        }
    }
}

static int closed_form(struct route *r, const struct route_tree *t, struct ibshift_error *err)
{
    struct route_closed c = {.r = r, .t = t};
    int rc = 0;

    c.aims = malloc((size_t)r->fabric->lft_stride * sizeof(*c.aims));
    if (c.aims == NULL || route_tree_order(t, &r->order, &r->order_count) != 0) {
        free(c.aims);
        return ibshift_fail(err, -ENOMEM, "no memory for %u hosts", r->fabric->host_count);
    }
    memset(c.aims, 0xff, (size_t)r->fabric->lft_stride * sizeof(*c.aims));
    set_aims(&c);
    if (t->missing == 0) {
        rc = route_whole(&c, err);
    } else {
        rc = route_damaged(&c, err);
    }
    free(c.aims);
    return rc;
}

int route_closed_engine(struct route *r, bool is_crossed, struct ibshift_error *err)
{
    struct route_tree t;
    int rc = route_tree_find(r->fabric, &t, err);

    if (rc != 0) {
        return rc;
    }
    rc = route_tree_check_crossing(&t, is_crossed, err);
    if (rc == 0) {
        rc = closed_form(r, &t, err);
    }
    if (rc == 0) {
        rc = route_tree_switches(r, &t, err);
    }
    route_tree_free(&t);
    return rc;
}
