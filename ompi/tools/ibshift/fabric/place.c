#include "fabric/place.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "fabric/shape/order.h"
#include "fabric/table/arrange.h"

enum {
    PAIRS = 2 << 20, /* of hosts, in all candidates that are counted: a quarter of a second */
    TIGHTEST = 4,    /* parts of the fabric of a size, that are looked at */
};

/* How many hosts leaves give, and which. */
enum taking { EVENLY, UNEVENLY, SPREAD };

struct leaf {
    uint32_t sw, first, hosts, free; /* its hosts are along[first ..], */
    uint32_t taken, part;            /* those of a candidate; and the part of the fabric */
    uint32_t common;                 /* what makes it one to take, see by_common() */
};

struct search {
    struct fabric_place *place;
    struct ibshift_shape shape;
    struct ibshift_error *err;
    uint32_t *order;           /* all hosts in routing order, */
    uint32_t *along, *leaf_of; /* and those of each leaf together; [host] */
    struct leaf *leaves;
    uint32_t leaf_count;
    struct leaf **some; /* those of the part that is looked at */
    uint32_t some_count;
    uint32_t places;   /* in the largest of them */
    uint32_t *popular; /* [place in a leaf]: leaves where it is free */
    uint32_t *ranking; /* places, the most popular first */
    uint8_t *used;     /* [place]: has its rank */
    uint8_t *is_in;    /* [host]: of the candidate */
    uint32_t *hosts;
    int64_t pairs; /* left to count */
    int rc;
};

static void find_leaves(struct search *s, struct pool *pool)
{
    const struct ibshift_fabric *f = s->place->fabric;
    uint32_t *at = pool_new(pool, f->node_count, sizeof(*at)), first = 0;

    s->leaves = pool_new(pool, f->node_count, sizeof(*s->leaves));
    for (uint32_t i = 0; i < f->host_count; i++) {
        uint32_t sw = ibshift_port_neighbour(f, f->hosts[s->order[i]]);

        if (at[sw] == 0) {
            s->leaves[s->leaf_count].sw = sw;
            at[sw] = ++s->leaf_count;
        }
        s->leaf_of[s->order[i]] = at[sw] - 1;
        s->leaves[at[sw] - 1].hosts++;
    }
    for (uint32_t i = 0; i < s->leaf_count; i++) {
        s->leaves[i].first = first;
        first += s->leaves[i].hosts;
        s->leaves[i].hosts = 0;
    }
    for (uint32_t i = 0; i < f->host_count; i++) {
        struct leaf *leaf = &s->leaves[s->leaf_of[s->order[i]]];

        s->along[leaf->first + leaf->hosts++] = s->order[i];
        leaf->free += s->place->is_free[s->order[i]];
    }
}

/* ---- what a candidate costs ---- */

static int count_flows(struct search *s, struct fabric_place *c)
{
    const struct fabric_place *p = s->place;
    struct ibshift_placement *placement = NULL;
    struct ibshift_contention result;
    int rc = ibshift_placement_open(p->fabric, s->hosts, p->wanted, &placement, s->err);

    rc = rc == 0 ? ibshift_placement_routes(placement, false, s->err) : rc;
    rc = rc == 0 ? ibshift_arrange_price(placement, NULL, 1, 1, &result) : rc;
    if (rc == 0 && p->wanted > 1) {
        c->bound = result.bound / (p->wanted - 1); /* of cables between switches: */
        c->bound = c->bound > 1 ? c->bound : 1;
        c->cost = result.sum / (p->wanted - 1);
    }
    ibshift_placement_close(placement);
    return rc;
}

static bool is_better(const struct fabric_place *a, const struct fabric_place *b)
{
    if (b->leaves == 0 || fabric_place_is_clean(a) != fabric_place_is_clean(b)) {
        return b->leaves == 0 || fabric_place_is_clean(a);
    }
    /* Small differences are worth less than leaves that stay whole. */
    if (fabs(a->bound - b->bound) > 0.05) {
        return a->bound < b->bound;
    }
    if (fabs(a->cost - b->cost) > 0.5) {
        return a->cost < b->cost;
    }
    return a->broken != b->broken   ? a->broken < b->broken
           : a->leaves != b->leaves ? a->leaves < b->leaves
                                    : a->cost < b->cost;
}

/* The candidate is what is_in has. */
static void consider(struct search *s)
{
    struct fabric_place c = {.bound = 1, .cost = 1};
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->place->fabric->host_count; i++) {
        uint32_t host = s->order[i];

        if (s->is_in[host]) {
            s->hosts[count++] = host;
            s->leaves[s->leaf_of[host]].taken++;
            s->is_in[host] = 0;
        }
    }
    for (uint32_t i = 0; i < s->leaf_count; i++) {
        struct leaf *leaf = &s->leaves[i];

        c.leaves += leaf->taken > 0;
        c.broken += leaf->taken > 0 && leaf->taken < leaf->hosts && leaf->free == leaf->hosts;
        leaf->taken = 0;
    }
    s->pairs -= (int64_t)count * count;
    s->rc = count_flows(s, &c);
    if (s->rc == 0 && is_better(&c, s->place)) {
        s->place->bound = c.bound;
        s->place->cost = c.cost;
        s->place->leaves = c.leaves;
        s->place->broken = c.broken;
        memcpy(s->place->hosts, s->hosts, count * sizeof(*s->hosts));
    }
}

static bool may_go_on(const struct search *s)
{
    return s->rc == 0 && (s->place->leaves == 0 || s->pairs > 0);
}

/* ---- candidates in a part of the fabric ---- */

/* Those with more of the common places, then those that are fuller of other jobs. Where too few have
 * enough, the rest comes with what it has. */
static int by_common(const void *a, const void *b)
{
    const struct leaf *x = *(struct leaf *const *)a, *y = *(struct leaf *const *)b;

    return x->common != y->common ? (x->common > y->common ? -1 : 1)
           : x->free != y->free   ? (x->free < y->free ? -1 : 1)
                                  : (x->first < y->first ? -1 : 1);
}

/* The place that is free on most leaves of those that are not used; ties: the first. */
static bool next_popular(struct search *s, uint32_t *best)
{
    bool is_found = false;

    for (uint32_t i = 0; i < s->places; i++) {
        if (!s->used[i] && (!is_found || s->popular[i] > s->popular[*best])) {
            *best = i;
            is_found = true;
        }
    }
    s->used[is_found ? *best : 0] = 1;
    return is_found;
}

static bool is_free_at(const struct search *s, const struct leaf *leaf, uint32_t at)
{
    return at < leaf->hosts && s->place->is_free[s->along[leaf->first + at]];
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* So many of a leaf, the common places first. */
static void take_of(struct search *s, const struct leaf *leaf, uint32_t count)
{
    for (uint32_t i = 0; i < s->places && count > 0; i++) {
        if (is_free_at(s, leaf, s->ranking[i])) {
            s->is_in[s->along[leaf->first + s->ranking[i]]] = 1;
            count--;
        }
    }
}

/* So many of a leaf, at the places that fewest leaves before have given: where tables deal destinations
 * out by their places, no cable out of a leaf then leads to many more of them than another one. */
static void take_spread(struct search *s, const struct leaf *leaf, uint32_t count)
{
    for (; count > 0; count--) {
        uint32_t best = leaf->hosts;

        for (uint32_t at = 0; at < leaf->hosts; at++) {
            if (is_free_at(s, leaf, at) && !s->is_in[s->along[leaf->first + at]] &&
                (best == leaf->hosts || s->popular[at] < s->popular[best])) {
                best = at;
            }
        }
        s->is_in[s->along[leaf->first + best]] = 1;
        s->popular[best]++;
    }
}

/*
 * As many of each leaf, at the same places: where tables deal destinations out by their places, its
 * hosts then leave a leaf through different cables in every stage.
 */
static void take_evenly(struct search *s, uint32_t each, enum taking taking)
{
    uint32_t left = s->place->wanted;
    uint64_t all = 0;

    for (uint32_t i = 0; i < s->some_count; i++) {
        all += s->some[i]->free >= each || taking != EVENLY ? least(s->some[i]->free, each) : 0;
    }
    if (all < left) {
        return;
    }
    memset(s->popular, 0, s->places * sizeof(*s->popular));
    memset(s->used, 0, s->places);
    for (uint32_t i = 0; i < s->some_count; i++) {
        for (uint32_t at = 0; at < s->some[i]->hosts && s->some[i]->free >= each; at++) {
            s->popular[at] += is_free_at(s, s->some[i], at);
        }
    }
    for (uint32_t i = 0; i < s->places && next_popular(s, &s->ranking[i]); i++) {
    }
    for (uint32_t i = 0; i < s->some_count; i++) {
        s->some[i]->common = least(s->some[i]->free, each) * s->places;
        for (uint32_t at = 0; at < each; at++) {
            s->some[i]->common += is_free_at(s, s->some[i], s->ranking[at]);
        }
    }
    qsort(s->some, s->some_count, sizeof(struct leaf *), by_common);
    if (taking == SPREAD) {
        memset(s->popular, 0, s->places * sizeof(*s->popular));
    }
    for (uint32_t i = 0; i < s->some_count && left > 0; i++) {
        uint32_t count = least(least(each, s->some[i]->free), left);

        (taking == SPREAD ? take_spread : take_of)(s, s->some[i], count);
        left -= count;
    }
    consider(s);
}

static void try_part(struct search *s, uint32_t part)
{
    uint32_t most = 0;

    s->some_count = 0;
    s->places = 1;
    for (uint32_t i = 0; i < s->leaf_count; i++) {
        if (s->leaves[i].part == part && s->leaves[i].free > 0) {
            s->some[s->some_count++] = &s->leaves[i];
            most = s->leaves[i].free > most ? s->leaves[i].free : most;
            s->places = s->leaves[i].hosts > s->places ? s->leaves[i].hosts : s->places;
        }
    }
    most = least(most, s->place->wanted);
    for (int rest = 0; rest < 2; rest++) { /* without a rest first: most of those are clean */
        for (uint32_t each = most; each > 0 && may_go_on(s); each--) {
            if ((s->place->wanted % each != 0) == rest) {
                take_evenly(s, each, EVENLY);
            }
        }
    }
    if (may_go_on(s)) {
        take_evenly(s, most, UNEVENLY); /* on as few leaves as there can be */
    }
    for (uint32_t each = most; each > 0 && may_go_on(s); each--) {
        take_evenly(s, each, SPREAD);
    }
}

/* ---- parts of the fabric, from leaves on ---- */

struct part {
    uint32_t free, number;
};

static int by_free(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return x->free != y->free ? (x->free < y->free ? -1 : 1) : x->number < y->number ? -1 : 1;
}

/* Numbers the parts of a level; above the levels there is one. */
static void set_parts(struct search *s, unsigned level)
{
    const struct ibshift_fabric *f = s->place->fabric;

    for (uint32_t i = 0; i < s->leaf_count; i++) {
        s->leaves[i].part =
            level == 1 ? i
            : level <= s->shape.levels && s->shape.down[level] != NULL
                ? s->shape.down[level][f->nodes[s->leaves[i].sw].switch_index] % f->node_count
                : 0;
    }
}

static void try_level(struct search *s, unsigned level, struct pool *pool)
{
    uint32_t count = s->place->fabric->node_count, fit = 0;
    struct part *parts = pool_new(pool, count, sizeof(*parts));

    set_parts(s, level);
    for (uint32_t i = 0; i < s->leaf_count; i++) {
        parts[s->leaves[i].part].number = s->leaves[i].part;
        parts[s->leaves[i].part].free += s->leaves[i].free;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].free >= s->place->wanted) {
            parts[fit++] = parts[i];
        }
    }
    qsort(parts, fit, sizeof(*parts), by_free);
    for (uint32_t i = 0; i < fit && i < TIGHTEST && may_go_on(s); i++) {
        try_part(s, parts[i].number);
    }
}

int fabric_place_find(struct fabric_place *place, struct pool *pool, struct ibshift_error *err)
{
    uint32_t hosts = place->fabric->host_count;
    struct search s = {.place = place, .err = err, .pairs = PAIRS};
    unsigned top;
    int rc = ibshift_shape_find(place->fabric, &s.shape, err);

    if (rc != 0) {
        return rc;
    }
    rc = ibshift_order_routing(place->fabric, &s.shape, &s.order, err);
    if (rc == 0) {
        place->hosts = pool_new(pool, place->wanted, sizeof(*place->hosts));
        place->leaves = 0;
        s.along = pool_new(pool, hosts, sizeof(*s.along));
        s.leaf_of = pool_new(pool, hosts, sizeof(*s.leaf_of));
        s.popular = pool_new(pool, hosts, sizeof(*s.popular));
        s.ranking = pool_new(pool, hosts, sizeof(*s.ranking));
        s.used = pool_new(pool, hosts, sizeof(*s.used));
        s.hosts = pool_new(pool, hosts, sizeof(*s.hosts));
        s.is_in = pool_new(pool, hosts, sizeof(*s.is_in));
        find_leaves(&s, pool);
        s.some = pool_new(pool, s.leaf_count, sizeof(struct leaf *));
        top = s.shape.levels > 1 ? s.shape.levels + 1 : 2; /* all: a torus has no levels */
        for (unsigned level = 1; level <= top && may_go_on(&s); level++) {
            if (place->leaves == 0 || !fabric_place_is_clean(place)) {
                try_level(&s, level, pool);
            }
        }
        rc = s.rc;
    }
    free(s.order);
    ibshift_shape_free(&s.shape);
    return rc;
}
