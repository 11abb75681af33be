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

/* down[] from up[]: the same labels and cables. */
static void aim_down(const struct route_tree *t, struct route_aim *aim)
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

/* ---- rows of a whole tree: a look-up an entry, level by level, so that a row takes microseconds ---- */

/* What all switches of a level look up, by LID. A LID that is no host's has the up port `none`. */
struct column {
    uint32_t *part;      /* component below the level, UINT32_MAX: of no host */
    uint16_t *up, *down; /* into the switch's tables; down of level 1: the port itself */
};

struct whole {
    const struct route_closed *c;
    struct column column[IBSHIFT_LEVELS_MAX + 1];
};

static int fill_column(const struct route_closed *c, unsigned l, struct column *column)
{
    const struct route_tree *t = c->t;
    uint32_t lids = c->r->fabric->lft_stride;

    column->part = malloc((size_t)lids * sizeof(*column->part));
    column->up = malloc((size_t)lids * sizeof(*column->up));
    column->down = malloc((size_t)lids * sizeof(*column->down));
    if (column->part == NULL || column->up == NULL || column->down == NULL) {
        return -ENOMEM;
    }
    for (uint32_t lid = 0; lid < lids; lid++) {
        const struct route_aim *aim = &c->aims[lid];
        bool is_host = lid != 0 && aim->leaf != IBSHIFT_NO_SWITCH;

        column->part[lid] = is_host ? t->shape.down[l][aim->leaf] : UINT32_MAX;
        column->up[lid] = (uint16_t)(is_host && l < t->h ? aim->up[l] : t->up_stride);
        column->down[lid] = is_host ? aim->down[l] : 0;
    }
    return 0;
}

static void fill_row(const struct whole *w, uint32_t s, uint8_t *up, uint8_t *down)
{
    const struct route_tree *t = w->c->t;
    struct ibshift_fabric *f = w->c->r->fabric;
    unsigned l = t->level[s];
    const struct column *column = &w->column[l];
    uint32_t part = t->shape.down[l][s], lids = f->lft_stride;
    uint8_t *row = f->lft + (size_t)s * lids;

    memcpy(up, t->up + (size_t)s * t->up_stride, t->up_stride);
    up[t->up_stride] = 0;
    if (l > 1) {
        memcpy(down, t->down + (size_t)s * t->down_stride, t->down_stride);
    } else {
        for (unsigned i = 0; i <= IBSHIFT_PORT_MAX; i++) {
            down[i] = (uint8_t)i;
        }
    }
    for (uint32_t lid = 0; lid < lids; lid++) {
        row[lid] = column->part[lid] == part ? down[column->down[lid]] : up[column->up[lid]];
    }
}

static int fill_whole_rows(void *context, uint32_t first, uint32_t end)
{
    const struct whole *w = context;
    const struct route_tree *t = w->c->t;
    size_t ups = t->up_stride + 1, downs = t->down_stride + IBSHIFT_PORT_MAX + 1;
    uint8_t *up = malloc(ups + downs);

    for (uint32_t s = first; up != NULL && s < end; s++) {
        if (t->level[s] != 0) {
            fill_row(w, s, up, up + ups);
        }
    }
    free(up);
    return up != NULL ? 0 : -ENOMEM;
}

/* Nothing is missing: every row as the formulas have it. -ENOMEM. */
static int fill_whole(const struct route_closed *c, struct ibshift_error *err)
{
    struct whole w = {.c = c};
    int rc = 0;

    for (unsigned l = 1; rc == 0 && l <= c->t->h; l++) {
        rc = fill_column(c, l, &w.column[l]);
    }
    if (rc == 0) {
        rc = route_parallel(c->r->threads, c->r->fabric->switch_count, fill_whole_rows, &w);
    }
    for (unsigned l = 1; l <= c->t->h; l++) {
        free(w.column[l].part);
        free(w.column[l].up);
        free(w.column[l].down);
    }
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory for %u LIDs", c->r->fabric->lft_stride);
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

/* The switch at the other end of s's up port, IBSHIFT_NO_SWITCH if the port has no cable. */
static uint32_t parent_at(const struct route_tree *t, uint32_t s, unsigned index)
{
    const struct ibshift_fabric *f = t->f;
    unsigned port = t->up[(size_t)s * t->up_stride + index];
    uint32_t node = f->switches[s];

    return port == 0
               ? IBSHIFT_NO_SWITCH
               : f->nodes[ibshift_port_neighbour(f, ibshift_node_port(f, node, port))].switch_index;
}

/* The same by any cable, from s or one that shares its digits. */
static uint32_t parent_of(const struct route_tree *t, uint32_t s, unsigned index)
{
    unsigned l = t->level[s], fan = t->parents[l + 1] * t->shared[l + 1];

    uint32_t twin = s;

    do {
        for (unsigned i = index % fan; i < t->ups[l]; i += fan) {
            uint32_t parent = parent_at(t, twin, i);

            if (parent != IBSHIFT_NO_SWITCH) {
                return parent;
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
    uint32_t first = is_down ? t->first_down[s] : t->first_up[s];
    uint32_t end = is_down ? t->first_up[s + 1] : t->first_down[s];
    unsigned best = 0, best_burden = 0;

    for (uint32_t c = first; c < end; c++) {
        const struct route_cable *cable = &t->cable[c];
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
    const struct ibshift_fabric *f = d->c->t->f;
    uint32_t next;

    if (port == 0) {
        return false;
    }
    next = f->nodes[ibshift_port_neighbour(f, ibshift_node_port(f, f->switches[s], port))]
               .switch_index;
    return links[next] + 1 == links[s];
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

static int fill_rows(void *context, uint32_t first, uint32_t end)
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
    return 0;
}

static int find_ways(void *context, uint32_t first, uint32_t end)
{
    struct damage *d = context;
    const struct route_tree *t = d->c->t;
    size_t switches = t->f->switch_count;
    uint32_t *queue = malloc((switches + 1) * sizeof(*queue));

    for (uint32_t i = first; queue != NULL && i < end; i++) {
        route_tree_ways(t, d->w.leaves[i], d->w.descent + i * switches, d->w.way + i * switches,
                        queue);
    }
    free(queue);
    return queue != NULL ? 0 : -ENOMEM;
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

static int route_around(struct damage *d, struct ibshift_error *err)
{
    const struct route_tree *t = d->c->t;
    size_t cells = (size_t)d->w.leaf_count * t->f->switch_count + 1;
    int rc;

    d->w.descent = malloc(cells);
    d->w.way = malloc(cells);
    d->moved = calloc((size_t)t->f->switch_count + 1, (t->up_stride + 1) * sizeof(*d->moved));
    if (d->w.descent == NULL || d->w.way == NULL || d->moved == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the ways to %u leaves", d->w.leaf_count);
    }
    rc = route_parallel(d->c->r->threads, d->w.leaf_count, find_ways, d);
    if (rc != 0) {
        return ibshift_fail(err, rc, "no memory for the ways to %u leaves", d->w.leaf_count);
    }
    for (uint32_t i = 0; rc == 0 && i < d->w.leaf_count; i++) {
        rc = route_tree_check_ways(t, d->w.leaves[i], d->w.way + (size_t)i * t->f->switch_count,
                                   err);
    }
    if (rc == 0) {
        mend_aims(d);
        route_parallel(d->c->r->threads, t->f->switch_count, fill_rows, d);
        rc = route_polish_orders(d->c, &d->w, err);
    }
    return rc;
}

/*
 * Where cables or switches are missing (section V of the paper): moves the destinations whose way
 * down is gone to other parents, for all sources alike, and fills every row with the formula's port
 * where it leads on, with the least used one that does where it does not.
 */
static int fill_damaged(struct route_closed *c, struct ibshift_error *err)
{
    size_t switches = (size_t)c->t->f->switch_count + 1;
    struct damage d = {.c = c,
                       .w.leaves = calloc(switches, sizeof(*d.w.leaves)),
                       .w.number = calloc(switches, sizeof(*d.w.number)),
                       .rise = calloc(switches, 1)};
    int rc = 0;

    if (d.w.leaves == NULL || d.w.number == NULL || d.rise == NULL) {
        rc = ibshift_fail(err, -ENOMEM, "no memory for %u switches", c->t->f->switch_count);
    } else {
        list_leaves(&d);
        rc = route_around(&d, err);
    }
    free(d.w.leaves);
    free(d.w.number);
    free(d.rise);
    free(d.w.descent);
    free(d.w.way);
    free(d.moved);
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
            aim_down(t, aim);
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
        rc = fill_whole(&c, err);
    } else {
        rc = fill_damaged(&c, err);
    }
    free(c.aims);
    return rc;
}

/* Tables and order; is_crossed: the engine wants cross-connected levels, or else none. */
static int closed_engine(struct route *r, bool is_crossed, struct ibshift_error *err)
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
