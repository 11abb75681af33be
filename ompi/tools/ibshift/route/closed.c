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

/* down[] from up[]: the same labels and cables. */
static void aim_down(const struct route_tree *t, struct route_aim *aim)
{
    unsigned label = 0;

    aim->down[1] = aim->host_port;
    for (unsigned l = 2; l <= t->h; l++) {
        unsigned copy = aim->up[l - 1] / t->parents[l];
        unsigned way = label * t->cables[l] + copy / t->shared[l];
        unsigned child = route_tree_digit(t, aim->leaf, l);

        aim->down[l] = (uint16_t)(child < t->children[l] ? child * t->ways[l] + way : 0);
        label = copy % t->shared[l];
    }
}

/* ---- rows of a whole tree: a look-up an entry ---- */

static void fill_row(const struct route_closed *c, uint32_t s)
{
    const struct route_tree *t = c->t;
    unsigned l = t->level[s];
    const uint32_t *part = t->shape.down[l]; /* [switch]: its component below the level */
    const uint8_t *up = t->up + (size_t)s * t->up_stride;
    const uint8_t *down = t->down + (size_t)s * t->down_stride;
    uint8_t *row = c->r->fabric->lft + (size_t)s * c->r->fabric->lft_stride;

    for (uint32_t lid = 1; lid < c->r->fabric->lft_stride; lid++) {
        const struct route_aim *aim = &c->aims[lid];

        if (aim->leaf != IBSHIFT_NO_SWITCH) {
            row[lid] = part[aim->leaf] == part[s] ? (l > 1 ? down[aim->down[l]] : aim->host_port)
                       : l < t->h                 ? up[aim->up[l]]
                                                  : 0;
        }
    }
}

static void fill_whole_rows(void *context, uint32_t first, uint32_t end)
{
    const struct route_closed *c = context;

    for (uint32_t s = first; s < end; s++) {
        if (c->t->level[s] != 0) {
            fill_row(c, s);
        }
    }
}

/* ---- routes around what is missing ---- */

struct damage {
    struct route_closed *c;
    struct route_leaf_ways w;
    uint8_t *rise;   /* [switch]: the highest level that it reaches by going up */
    uint16_t *moved; /* [switch * up_stride + index]: destinations that pass here though the formula
                        sends them elsewhere */
};

static const uint8_t *descents(const struct damage *d, uint32_t leaf)
{
    return d->w.descent + (size_t)d->w.number[leaf] * d->c->t->f->switch_count;
}

static const uint8_t *ways(const struct damage *d, uint32_t leaf)
{
    return d->w.way + (size_t)d->w.number[leaf] * d->c->t->f->switch_count;
}

/* The switch to which an up port leads, or any other cable to it from s or one that shares its digits;
 * IBSHIFT_NO_SWITCH: there is no cable. */
static uint32_t parent_of(const struct route_tree *t, uint32_t s, unsigned index)
{
    unsigned l = t->level[s], fan = t->parents[l + 1] * t->shared[l + 1];
    uint32_t twin = s;

    do {
        for (unsigned i = index % fan; i < t->ups[l]; i += fan) {
            unsigned port = t->up[(size_t)twin * t->up_stride + i];

            if (port != 0) {
                return route_next_switch(t->f, twin, port);
            }
        }
        twin = t->twin[twin];
    } while (twin != s);
    return IBSHIFT_NO_SWITCH;
}

/* The parent that may take a destination instead: one with a way down that rises highest, then the
 * least burdened. */
static unsigned other_parent(const struct damage *d, uint32_t s, unsigned wanted,
                             const uint8_t *descent)
{
    const struct route_tree *t = d->c->t;
    unsigned best = wanted, best_rise = 0, ups = t->ups[t->level[s]];
    unsigned best_moved = 0;

    for (unsigned i = 1; i < ups; i++) {
        unsigned index = (wanted + i) % ups;
        uint32_t parent = parent_of(t, s, index);
        unsigned moved = d->moved[(size_t)s * t->up_stride + index];

        if (parent == IBSHIFT_NO_SWITCH || descent[parent] == ROUTE_FAR) {
            continue;
        }
        if (d->rise[parent] > best_rise || (d->rise[parent] == best_rise && moved < best_moved)) {
            best = index;
            best_rise = d->rise[parent];
            best_moved = moved;
        }
    }
    if (best != wanted) {
        d->moved[(size_t)s * t->up_stride + best]++;
    }
    return best;
}

/* Climbs the way that the formula lays for a destination, and lays it anew where it is broken. */
static void mend_aim(const struct damage *d, struct route_aim *aim)
{
    const struct route_tree *t = d->c->t;
    const uint8_t *descent = descents(d, aim->leaf);
    uint32_t s = aim->leaf;

    for (unsigned l = t->level[s]; s != IBSHIFT_NO_SWITCH && l < t->h; l++) {
        uint32_t parent = parent_of(t, s, aim->up[l]);

        if (parent == IBSHIFT_NO_SWITCH || descent[parent] == ROUTE_FAR ||
            d->rise[parent] < d->rise[s]) {
            aim->up[l] = (uint16_t)other_parent(d, s, aim->up[l], descent);
            parent = parent_of(t, s, aim->up[l]);
        }
        s = parent;
    }
    aim_down(t, aim);
}

static void mend_aims(const struct damage *d)
{
    const struct ibshift_fabric *f = d->c->t->f;

    for (uint32_t h = 0; h < f->host_count; h++) {
        for (unsigned lid_offset = 0; lid_offset < ibshift_host_lid_count(f, h); lid_offset++) {
            mend_aim(d, &d->c->aims[ibshift_host_lid(f, h) + lid_offset]);
        }
    }
}

/* What one switch has sent through each of its ports against the formula. */
struct spare {
    const struct damage *d;
    uint32_t s;
    uint32_t used[IBSHIFT_PORT_MAX + 1];
};

/* Destinations that came to be sent through the last link to a leaf, next to parent. */
static unsigned burden(const struct damage *d, const struct route_aim *aim, uint32_t s,
                       unsigned port)
{
    const struct route_tree *t = d->c->t;
    unsigned l = t->level[s];

    if (l != t->level[aim->leaf]) {
        return 0;
    }
    for (unsigned i = 0; i < t->ups[l]; i++) {
        if (t->up[(size_t)s * t->up_stride + i] == port) {
            return d->moved[(size_t)aim->leaf * t->up_stride + i];
        }
    }
    return UINT16_MAX;
}

/* The least used of the cables that lead on by the shortest way. */
static unsigned other_port(struct spare *spare, const struct route_aim *aim, bool is_down)
{
    const struct damage *d = spare->d;
    const struct route_tree *t = d->c->t;
    uint32_t s = spare->s;
    const uint8_t *links = is_down ? descents(d, aim->leaf) : ways(d, aim->leaf);
    const struct route_cable *end, *first = route_tree_cables(t, s, is_down, &end);
    unsigned best = 0, best_burden = 0;

    for (const struct route_cable *cable = first; cable < end; cable++) {
        unsigned weight;

        if (links[cable->other] + 1 != links[s]) {
            continue;
        }
        weight = is_down ? 0 : burden(d, aim, s, cable->port);
        if (best == 0 || weight < best_burden ||
            (weight == best_burden && spare->used[cable->port] < spare->used[best])) {
            best = cable->port;
            best_burden = weight;
        }
    }
    spare->used[best]++;
    return best;
}

static bool leads_on(const struct damage *d, uint32_t s, unsigned port, const uint8_t *links)
{
    return port != 0 && links[route_next_switch(d->c->t->f, s, port)] + 1 == links[s];
}

static unsigned port_for(struct spare *spare, const struct route_aim *aim)
{
    const struct damage *d = spare->d;
    const struct route_tree *t = d->c->t;
    uint32_t s = spare->s;
    unsigned l = t->level[s], port;
    bool is_down = descents(d, aim->leaf)[s] != ROUTE_FAR;

    if (s == aim->leaf) {
        return aim->host_port;
    }
    if (is_down) {
        port = t->down[(size_t)s * t->down_stride + aim->down[l]];
        return leads_on(d, s, port, descents(d, aim->leaf)) ? port : other_port(spare, aim, true);
    }
    if (ways(d, aim->leaf)[s] == ROUTE_FAR || l == t->h) {
        return 0;
    }
    port = t->up[(size_t)s * t->up_stride + aim->up[l]];
    return leads_on(d, s, port, ways(d, aim->leaf)) ? port : other_port(spare, aim, false);
}

static void fill_rows(void *context, uint32_t first, uint32_t end)
{
    const struct damage *d = context;
    const struct route_tree *t = d->c->t;
    struct ibshift_fabric *f = d->c->r->fabric;

    for (uint32_t s = first; s < end; s++) {
        struct spare spare = {.d = d, .s = s};

        for (uint32_t lid = 1; t->level[s] != 0 && lid < f->lft_stride; lid++) {
            const struct route_aim *aim = &d->c->aims[lid];

            if (aim->leaf != IBSHIFT_NO_SWITCH) {
                ibshift_lft_set(f, s, lid, port_for(&spare, aim));
            }
        }
    }
}

static void find_ways(void *context, uint32_t first, uint32_t end)
{
    struct damage *d = context;
    const struct route_tree *t = d->c->t;
    size_t switches = t->f->switch_count;
    struct pool pool = {NULL};
    uint32_t *queue = pool_new(&pool, switches, sizeof(*queue));

    for (uint32_t i = first; i < end; i++) {
        route_tree_ways(t, d->w.leaves[i], d->w.descent + i * switches, d->w.way + i * switches,
                        queue);
    }
    pool_free(&pool);
}

static void list_leaves(struct damage *d)
{
    const struct route_tree *t = d->c->t;

    memset(d->w.number, 0xff, t->f->switch_count * sizeof(*d->w.number));
    for (uint32_t h = 0; h < t->f->host_count; h++) {
        uint32_t leaf = route_host_switch(t->f, h);

        if (d->w.number[leaf] == IBSHIFT_NO_SWITCH) {
            d->w.number[leaf] = d->w.leaf_count;
            d->w.leaves[d->w.leaf_count++] = leaf;
        }
    }
    for (uint32_t i = t->f->switch_count; i-- > 0;) {
        uint32_t s = t->by_level[i];

        d->rise[s] = t->level[s];
        for (uint32_t c = t->first_up[s]; c < t->first_down[s]; c++) {
            uint8_t rise = d->rise[t->cable[c].other];

            d->rise[s] = rise > d->rise[s] ? rise : d->rise[s];
        }
    }
}

/*
 * Where cables or switches are missing (section V of the paper): moves the destinations whose way
 * down is gone to other parents, for all sources alike, and fills every row with the formula's port
 * where it leads on, with the least used one that does where it does not.
 */
static int fill_damaged(struct route_closed *c, struct ibshift_error *err)
{
    const struct route_tree *t = c->t;
    uint32_t switches = t->f->switch_count;
    struct pool pool = {NULL};
    struct damage d = {.c = c,
                       .w.leaves = pool_new(&pool, switches, sizeof(*d.w.leaves)),
                       .w.number = pool_new(&pool, switches, sizeof(*d.w.number)),
                       .rise = pool_new(&pool, switches, 1),
                       .moved = pool_new(&pool, switches, (t->up_stride + 1) * sizeof(*d.moved))};
    int rc = 0;

    list_leaves(&d);
    d.w.descent = pool_new(&pool, d.w.leaf_count, switches);
    d.w.way = pool_new(&pool, d.w.leaf_count, switches);
    route_parallel(c->r->threads, d.w.leaf_count, find_ways, &d);
    for (uint32_t i = 0; rc == 0 && i < d.w.leaf_count; i++) {
        rc = route_tree_check_ways(t, d.w.leaves[i], ways(&d, d.w.leaves[i]), err);
    }
    if (rc == 0) {
        mend_aims(&d);
        route_parallel(c->r->threads, switches, fill_rows, &d);
        route_polish_orders(c, &d.w);
    }
    pool_free(&pool);
    return rc;
}

static void set_aims(struct route_closed *c)
{
    const struct route_tree *t = c->t;
    const struct ibshift_fabric *f = t->f;
    uint32_t next = t->places;

    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t leaf = route_host_switch(f, h);
        uint64_t place = t->place[h] != ROUTE_NO_PLACE ? t->place[h] : next++;

        for (unsigned lid_offset = 0; lid_offset < ibshift_host_lid_count(f, h); lid_offset++) {
            struct route_aim *aim = &c->aims[ibshift_host_lid(f, h) + lid_offset];

            aim->leaf = leaf;
            aim->host_port = f->ports[f->ports[f->hosts[h]].peer].number;
            aim_up(t, (place + lid_offset) % t->places, aim);
        }
    }
}

/* Tables and order; is_crossed: the engine wants cross-connected levels, or else none. */
static int closed_engine(struct route *r, bool is_crossed, struct ibshift_error *err)
{
    struct route_tree t;
    struct route_closed c = {.r = r, .t = &t};
    uint32_t lids = r->fabric->lft_stride;
    int rc = route_tree_find(r->fabric, is_crossed, &t, err);

    if (rc != 0) {
        return rc;
    }
    c.aims = pool_new(&t.pool, lids, sizeof(*c.aims));
    memset(c.aims, 0xff, lids * sizeof(*c.aims));
    set_aims(&c);
    if (r->job_of != NULL) {
        route_deal_ways(&c, &t);
    }
    for (uint32_t lid = 0; lid < lids; lid++) {
        if (c.aims[lid].leaf != IBSHIFT_NO_SWITCH) {
            aim_down(&t, &c.aims[lid]);
        }
    }
    route_tree_order(&t, r);
    if (t.missing == 0) {
        route_parallel(r->threads, r->fabric->switch_count, fill_whole_rows, &c);
    } else {
        rc = fill_damaged(&c, err);
    }
    if (rc == 0) {
        route_tree_switches(r, &t);
    }
    route_tree_free(&t);
    return rc;
}

/* Parallel-ports generalized fat trees, where no level is cross-connected. */
int route_pgft(struct route *r, struct ibshift_error *err)
{
    return closed_engine(r, false, err);
}

/* Quasi fat trees, where the switches of one level share the parts below them. */
int route_qft(struct route *r, struct ibshift_error *err)
{
    return closed_engine(r, true, err);
}
