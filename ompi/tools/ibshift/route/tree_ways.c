/* Up, then down, over the cables that are there: what no formula knows. */
#include "route/tree.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static void climb_from(const struct route_tree *t, uint32_t target, uint8_t *descent,
                       uint32_t *queue)
{
    uint32_t head = 0, tail = 0;

    memset(descent, ROUTE_FAR, t->f->switch_count);
    descent[target] = 0;
    queue[tail++] = target;
    while (head < tail) {
        uint32_t s = queue[head++];

        for (uint32_t c = t->first_up[s]; c < t->first_down[s]; c++) {
            uint32_t parent = t->cable[c].other;

            if (descent[parent] == ROUTE_FAR) {
                descent[parent] = (uint8_t)(descent[s] + 1);
                queue[tail++] = parent;
            }
        }
    }
}

static void extend(const struct route_tree *t, uint32_t s, const uint8_t *descent, uint8_t *way)
{
    for (uint32_t c = t->first_up[s]; descent[s] == ROUTE_FAR && c < t->first_down[s]; c++) {
        uint8_t links = way[t->cable[c].other];

        if (links < ROUTE_FAR - 1 && links + 1 < way[s]) {
            way[s] = (uint8_t)(links + 1);
        }
    }
}

void route_tree_ways(const struct route_tree *t, uint32_t target, uint8_t *descent, uint8_t *way,
                     uint32_t *queue)
{
    uint32_t switches = t->f->switch_count;

    climb_from(t, target, descent, queue);
    memcpy(way, descent, switches);
    for (uint32_t i = switches; i-- > 0;) {
        extend(t, t->by_level[i], descent, way);
    }
}

struct ways {
    struct route *r;
    const struct route_tree *t;
    bool is_to_hosts;
    atomic_bool are_apart; /* some leaves: a route is missing */
    struct ibshift_error *err;
};

/* The port of s on a way to that switch, the spread-th of the equally good ones; 0: none. */
static unsigned port_of(const struct route_tree *t, uint32_t s, const uint8_t *descent,
                        const uint8_t *way, uint32_t spread)
{
    bool is_down = descent[s] != ROUTE_FAR;
    const uint8_t *links = is_down ? descent : way;
    const struct route_cable *end, *first = route_tree_cables(t, s, is_down, &end);
    uint32_t good = 0;

    for (const struct route_cable *c = first; c < end; c++) {
        good += links[c->other] + 1 == links[s];
    }
    spread = good > 0 ? spread % good : 0;
    for (const struct route_cable *c = first; c < end; c++) {
        if (links[c->other] + 1 == links[s] && spread-- == 0) {
            return c->port;
        }
    }
    return 0;
}

static int fail_apart(const struct route_tree *t, uint32_t from, uint32_t to,
                      struct ibshift_error *err)
{
    return ibshift_fail(err, -ENOTSUP,
                        "too much is missing: no up/down route from switch '%s' to switch '%s'; "
                        "engines updn and flexible route any fabric",
                        ibshift_node_name(t->f, t->f->switches[from]),
                        ibshift_node_name(t->f, t->f->switches[to]));
}

int route_tree_check_ways(const struct route_tree *t, uint32_t target, const uint8_t *way,
                          struct ibshift_error *err)
{
    for (uint32_t h = 0; h < t->f->host_count; h++) {
        uint32_t s = route_host_switch(t->f, h);

        if (way[s] == ROUTE_FAR) {
            return fail_apart(t, s, target, err);
        }
    }
    return 0;
}

static void fill_column(const struct ways *w, uint32_t target, unsigned lid, uint32_t spread,
                        const uint8_t *descent, const uint8_t *way)
{
    const struct route_tree *t = w->t;
    struct ibshift_fabric *f = w->r->fabric;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (t->level[s] != 0 && ibshift_lft_get(f, s, lid) == 0 && s != target &&
            way[s] != ROUTE_FAR) {
            ibshift_lft_set(f, s, lid, port_of(t, s, descent, way, spread));
        }
    }
}

/* To all LIDs of hosts on the target; whether there are any, for whom the ways are searched. */
static bool fill_hosts(const struct ways *w, uint32_t target, uint8_t *descent, uint8_t *way,
                       uint32_t *queue)
{
    const struct ibshift_fabric *f = w->t->f;
    const struct ibshift_node *node = &f->nodes[f->switches[target]];
    unsigned hosts = 0;

    for (uint32_t p = node->first_port; p < node->first_port + node->port_count; p++) {
        uint32_t peer = f->ports[p].peer;

        if (peer == IBSHIFT_NO_PORT || f->nodes[f->ports[peer].node].kind != IBSHIFT_NODE_HCA) {
            continue;
        }
        if (hosts++ == 0) {
            route_tree_ways(w->t, target, descent, way, queue);
        }
        for (unsigned i = 0; i < 1u << f->ports[peer].lmc; i++) {
            unsigned lid = f->ports[peer].lid + i;

            ibshift_lft_set(w->r->fabric, target, lid, f->ports[p].number);
            fill_column(w, target, lid, lid, descent, way);
        }
    }
    return hosts > 0;
}

static void fill_targets(void *context, uint32_t first, uint32_t end)
{
    struct ways *w = context;
    const struct route_tree *t = w->t;
    uint32_t switches = t->f->switch_count;
    struct pool pool = {NULL};
    uint8_t *descent = pool_new(&pool, switches, 1), *way = pool_new(&pool, switches, 1);
    uint32_t *queue = pool_new(&pool, switches, sizeof(*queue));

    for (uint32_t target = first; target < end && !w->are_apart; target++) {
        unsigned lid = t->f->nodes[t->f->switches[target]].lid;

        if (w->is_to_hosts) {
            w->are_apart |= fill_hosts(w, target, descent, way, queue) &&
                            route_tree_check_ways(t, target, way, w->err) != 0;
        } else if (t->level[target] != 0 && lid != 0) {
            route_tree_ways(t, target, descent, way, queue);
            fill_column(w, target, lid, target, descent, way);
        }
    }
    pool_free(&pool);
}

int route_tree_fill(struct route *r, const struct route_tree *t, struct ibshift_error *err)
{
    struct ways w = {.r = r, .t = t, .is_to_hosts = true};

    route_parallel(r->threads, r->fabric->switch_count, fill_targets, &w);
    if (!w.are_apart) {
        return 0;
    }
    w.are_apart = false; /* once more, alone, for the message */
    w.err = err;
    fill_targets(&w, 0, r->fabric->switch_count);
    return -ENOTSUP;
}

/*
 * Entries for the LIDs of the switches themselves: up, then down, from wherever that leads there.
 * Whole trees by the digits, damaged ones by searching the ways to each switch.
 */

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

static void fill_rows(void *context, uint32_t first, uint32_t end)
{
    const struct ways *w = context;
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
}

void route_tree_switches(struct route *r, const struct route_tree *t)
{
    struct ways w = {.r = r, .t = t};

    route_parallel(r->threads, r->fabric->switch_count, t->missing == 0 ? fill_rows : fill_targets,
                   &w);
}

void route_tree_order(const struct route_tree *t, struct route *r)
{
    size_t most = (size_t)t->places + t->f->host_count;

    r->order = pool_new(&r->pool, most, sizeof(*r->order));
    r->order_count = t->places;
    memset(r->order, 0xff, most * sizeof(*r->order));
    for (uint32_t h = 0; h < t->f->host_count; h++) {
        r->order[t->place[h] != ROUTE_NO_PLACE ? t->place[h] : r->order_count++] = h;
    }
}
