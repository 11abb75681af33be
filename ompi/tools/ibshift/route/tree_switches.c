/*
 * Entries for the LIDs of the switches themselves: up, then down, from wherever that leads there.
 * Whole trees by the digits, damaged ones by searching the ways to each switch.
 */
#include "route/tree.h"

#include <errno.h>
#include <stdlib.h>

struct to_switches {
    struct route *r;
    const struct route_tree *t;
};

/* The down port of a switch above the target that leads to it. */
static unsigned port_down(const struct route_tree *t, uint32_t s, uint32_t target)
{
    unsigned l = t->level[s], ways = t->ways[l], way = target % ways;

    if (t->level[target] + 1u == l) {
        way = t->label[target] * t->cables[l] + target % t->cables[l];
    }
    return t->down[(size_t)s * t->down_stride + route_tree_digit(t, target, l) * ways + way];
}

/* An up port towards the switches above the target: its digits below its own level must be met. */
static unsigned port_up(const struct route_tree *t, uint32_t s, uint32_t target)
{
    unsigned l = t->level[s], goal = t->level[target], index = target % t->ups[l];

    if (l + 1 <= goal) {
        unsigned cable = target % t->cables[l + 1];
        unsigned label = l + 1 == goal ? t->label[target] : target % t->shared[l + 1];

        index = route_tree_digit(t, target, l + 1) +
                t->parents[l + 1] * (label + t->shared[l + 1] * cable);
    }
    return t->up[(size_t)s * t->up_stride + index];
}

static unsigned port_by_digits(const struct route_tree *t, uint32_t s, uint32_t target)
{
    unsigned l = t->level[s], goal = t->level[target], low = l < goal ? l : goal;

    if (t->shape.up[low][s] != t->shape.up[low][target]) {
        return 0; /* no way up, then down */
    }
    if (l > goal && t->shape.down[l][s] == t->shape.down[l][target]) {
        return port_down(t, s, target);
    }
    return l < t->h ? port_up(t, s, target) : 0;
}

static int fill_rows(void *context, uint32_t first, uint32_t end)
{
    const struct to_switches *w = context;
    const struct route_tree *t = w->t;
    struct ibshift_fabric *f = w->r->fabric;

    for (uint32_t s = first; s < end; s++) {
        for (uint32_t target = 0; t->level[s] != 0 && target < f->switch_count; target++) {
            unsigned lid = f->nodes[f->switches[target]].lid;

            if (target != s && lid != 0 && t->level[target] != 0) {
                ibshift_lft_set(f, s, lid, port_by_digits(t, s, target));
            }
        }
    }
    return 0;
}

static int search_ways(void *context, uint32_t first, uint32_t end)
{
    const struct to_switches *w = context;
    const struct route_tree *t = w->t;
    struct ibshift_fabric *f = w->r->fabric;
    size_t switches = (size_t)f->switch_count + 1;
    uint8_t *descent = malloc(2 * switches), *way = descent + switches;
    uint32_t *queue = malloc(switches * sizeof(*queue));
    int rc = descent == NULL || queue == NULL ? -ENOMEM : 0;

    for (uint32_t target = first; rc == 0 && target < end; target++) {
        unsigned lid = f->nodes[f->switches[target]].lid;

        if (t->level[target] == 0 || lid == 0) {
            continue;
        }
        route_tree_ways(t, target, descent, way, queue);
        for (uint32_t s = 0; s < f->switch_count; s++) {
            if (s != target && t->level[s] != 0 && way[s] != ROUTE_FAR) {
                ibshift_lft_set(f, s, lid, route_tree_port(t, s, descent, way, target));
            }
        }
    }
    free(descent);
    free(queue);
    return rc;
}

int route_tree_switches(struct route *r, const struct route_tree *t, struct ibshift_error *err)
{
    struct to_switches w = {.r = r, .t = t};
    int rc = route_parallel(r->threads, r->fabric->switch_count,
                            t->missing == 0 ? fill_rows : search_ways, &w);

    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory to route to the switches");
}
