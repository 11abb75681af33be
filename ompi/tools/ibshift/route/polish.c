/*
 * The last step around damage: counts the flows of every shift on every link, and moves routes off
 * links where three or more meet, then off those where two do. Greedy, one destination and one
 * switch at a time, with the exact count: no route is moved that would not be better off.
 */
#include "route/closed.h"

#include <string.h>

#define PASSES      3
#define NONE        UINT32_MAX
#define LINKS_MOST  (2 * IBSHIFT_LEVELS_MAX)
#define WEIGHT_MOST 5
#define HEIGHTS     64 /* flows of a link, the last for all above */
#define RAISE       ((uint64_t)1 << 20)

struct polish {
    const struct route_closed *c;
    const struct route_leaf_ways *w;
    unsigned lid_offset;
    unsigned crowd;           /* flows of one stage on one link that are worth a look */
    const uint32_t *place_of; /* [host] */
    uint32_t places, links;
    uint32_t *id;          /* [port]: number of the link, NONE: it leads to a host */
    uint16_t *flows;       /* [id * places + shift] */
    uint32_t *links_with;  /* [shift * HEIGHTS + flows]: links that carry so many */
    uint8_t *peak;         /* [shift]: the most flows of a link, HEIGHTS - 1 at most */
    uint32_t *place;       /* hosts' places, leaf by leaf */
    uint32_t *first_place; /* [leaf number]: into place; [leaf_count] = end */
    /* Leaves whose routes to the destination at hand pass a switch: a list a switch. */
    uint32_t *head;
    uint32_t *next, *item; /* leaf numbers */
    uint32_t items;
    const uint8_t *descent, *way; /* to that destination */
    unsigned lid;
    uint32_t goal, goal_place; /* switch; place of the host */
};

/* A destination's links from one switch on. */
struct route_tail {
    uint32_t id[LINKS_MOST];
    unsigned count;
};

/* The way from s on if it left by port. */
static void find_tail(const struct polish *p, uint32_t s, unsigned port, struct route_tail *tail)
{
    const struct ibshift_fabric *f = p->c->r->fabric;

    tail->count = 0;
    while (s != p->goal && tail->count < LINKS_MOST) {
        tail->id[tail->count++] = p->id[ibshift_node_port(f, f->switches[s], port)];
        s = route_next_switch(f, s, port);
        port = ibshift_lft_get(f, s, p->lid);
    }
}

static uint32_t shift_of(const struct polish *p, uint32_t from)
{
    return p->goal_place >= from ? p->goal_place - from : p->goal_place + p->places - from;
}

static uint16_t *cell(const struct polish *p, uint32_t id, uint32_t shift)
{
    return &p->flows[(size_t)id * p->places + shift];
}

static unsigned height(unsigned flows)
{
    return flows < HEIGHTS ? flows : HEIGHTS - 1;
}

/* One flow more or less on a link in one stage. */
static void add_flow(const struct polish *p, uint32_t id, uint32_t shift, int step)
{
    uint32_t *links_with = p->links_with + (size_t)shift * HEIGHTS;
    uint16_t *flows = cell(p, id, shift);
    uint8_t *peak = &p->peak[shift];

    links_with[height(*flows)]--;
    *flows = (uint16_t)(*flows + step);
    links_with[height(*flows)]++;
    *peak = height(*flows) > *peak ? (uint8_t)height(*flows) : *peak;
    while (*peak > 0 && links_with[*peak] == 0) {
        (*peak)--;
    }
}

/* The flow of the next host whose route passes s, of which *item and *place say where the walk is; its
 * shift in *shift. False: there is none. */
static bool next_flow(const struct polish *p, uint32_t *item, uint32_t *place, uint32_t *shift)
{
    for (; *item != NONE; *item = p->next[*item], *place = 0) {
        uint32_t leaf = p->item[*item], first = p->first_place[leaf];

        while (first + *place < p->first_place[leaf + 1]) {
            uint32_t from = p->place[first + (*place)++];

            if (from != p->goal_place) {
                *shift = shift_of(p, from);
                return true;
            }
        }
    }
    return false;
}

/* Adds the flows of all hosts whose routes pass s to a tail, or takes them off. */
static void add_flows(const struct polish *p, uint32_t s, const struct route_tail *tail, int step)
{
    uint32_t item = p->head[s], place = 0, shift;

    while (next_flow(p, &item, &place, &shift)) {
        for (unsigned l = 0; l < tail->count; l++) {
            add_flow(p, tail->id[l], shift, step);
        }
    }
}

/* What the flows of s would meet on a tail; above all, would a stage's busiest link become busier? */
static uint64_t price(const struct polish *p, uint32_t s, const struct route_tail *tail)
{
    uint32_t item = p->head[s], place = 0, shift;
    uint64_t sum = 0;

    while (next_flow(p, &item, &place, &shift)) {
        uint64_t raise = 0;

        for (unsigned l = 0; l < tail->count; l++) {
            unsigned met = *cell(p, tail->id[l], shift);

            sum += met == 0 ? 0 : 1ull << 3 * (met < WEIGHT_MOST ? met - 1 : WEIGHT_MOST - 1);
            raise = met != 0 && met + 1 > p->peak[shift] ? RAISE : raise;
        }
        sum += raise;
    }
    return sum;
}

static bool is_crowded(const struct polish *p, uint32_t s, const struct route_tail *tail)
{
    uint32_t item = p->head[s], place = 0, shift;

    while (next_flow(p, &item, &place, &shift)) {
        for (unsigned l = 0; l < tail->count; l++) {
            if (*cell(p, tail->id[l], shift) >= p->crowd) {
                return true;
            }
        }
    }
    return false;
}

/* Moves the destination at s to the port whose way is the least crowded. */
static bool improve(struct polish *p, uint32_t s, bool is_down)
{
    const struct route_tree *t = p->c->t;
    const uint8_t *links = is_down ? p->descent : p->way;
    const struct route_cable *end, *first = route_tree_cables(t, s, is_down, &end);
    unsigned now = ibshift_lft_get(p->c->r->fabric, s, p->lid), best = now;
    struct route_tail old, tail;
    uint64_t least;

    find_tail(p, s, now, &old);
    if (!is_crowded(p, s, &old)) {
        return false;
    }
    add_flows(p, s, &old, -1);
    least = price(p, s, &old);
    for (const struct route_cable *cable = first; cable < end; cable++) {
        uint64_t cost;

        if (cable->port == now || links[cable->other] + 1 != links[s]) {
            continue;
        }
        find_tail(p, s, cable->port, &tail);
        cost = price(p, s, &tail);
        if (cost < least) {
            least = cost;
            best = cable->port;
        }
    }
    ibshift_lft_set(p->c->r->fabric, s, p->lid, best);
    find_tail(p, s, best, &tail);
    add_flows(p, s, &tail, 1);
    return best != now;
}

/* Who passes which switch of a level, up or down. */
static void list_leaves(struct polish *p, unsigned level, bool is_down)
{
    const struct route_tree *t = p->c->t;

    memset(p->head, 0xff, t->f->switch_count * sizeof(*p->head));
    p->items = 0;
    for (uint32_t i = 0; i < p->w->leaf_count; i++) {
        uint32_t s = p->w->leaves[i];

        for (unsigned hops = 0; s != p->goal && hops < LINKS_MOST; hops++) {
            if (t->level[s] == level && (p->descent[s] != ROUTE_FAR) == is_down) {
                p->item[p->items] = i;
                p->next[p->items] = p->head[s];
                p->head[s] = p->items++;
                break;
            }
            s = route_next_switch(t->f, s, ibshift_lft_get(p->c->r->fabric, s, p->lid));
        }
    }
}

static bool improve_level(struct polish *p, unsigned level, bool is_down)
{
    const struct route_tree *t = p->c->t;
    bool moved = false;

    list_leaves(p, level, is_down);
    for (uint32_t s = 0; s < t->f->switch_count; s++) {
        if (p->head[s] != NONE) {
            moved = improve(p, s, is_down) || moved;
        }
    }
    return moved;
}

static void aim_at(struct polish *p, uint32_t host)
{
    const struct route_tree *t = p->c->t;
    size_t row;

    p->goal = route_host_switch(t->f, host);
    row = (size_t)p->w->number[p->goal] * t->f->switch_count;
    p->descent = p->w->descent + row;
    p->way = p->w->way + row;
    p->goal_place = p->place_of[host];
    p->lid = ibshift_host_lid(t->f, host) + p->lid_offset;
}

static void count_all(struct polish *p)
{
    const struct ibshift_fabric *f = p->c->t->f;
    struct route_tail tail;

    memset(p->flows, 0, (size_t)p->links * p->places * sizeof(*p->flows));
    memset(p->links_with, 0, (size_t)p->places * HEIGHTS * sizeof(*p->links_with));
    memset(p->peak, 0, p->places);
    for (uint32_t shift = 0; shift < p->places; shift++) {
        p->links_with[(size_t)shift * HEIGHTS] = p->links;
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        aim_at(p, h);
        for (uint32_t i = 0; i < p->w->leaf_count; i++) {
            uint32_t s = p->w->leaves[i];

            p->head[s] = 0;
            p->next[0] = NONE;
            p->item[0] = i;
            find_tail(p, s, ibshift_lft_get(p->c->r->fabric, s, p->lid), &tail);
            add_flows(p, s, &tail, 1);
        }
    }
}

static bool improve_all(struct polish *p)
{
    const struct route_tree *t = p->c->t;
    bool moved = false;

    for (uint32_t h = 0; h < t->f->host_count; h++) {
        aim_at(p, h);
        for (unsigned l = 1; l < t->h; l++) {
            moved = improve_level(p, l, false) || moved;
        }
        for (unsigned l = t->h; l >= 2; l--) {
            moved = improve_level(p, l, true) || moved;
        }
    }
    return moved;
}

static void number_links(struct polish *p)
{
    const struct ibshift_fabric *f = p->c->t->f;

    for (uint32_t port = 0; port < f->port_count; port++) {
        uint32_t other = ibshift_port_neighbour(f, port);
        bool is_between = ibshift_node_is_switch(f, f->ports[port].node) &&
                          other != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, other);

        p->id[port] = is_between ? p->links++ : NONE;
    }
}

static void list_places(struct polish *p)
{
    const struct route_tree *t = p->c->t;
    uint32_t *first = p->first_place;

    memset(first, 0, ((size_t)p->w->leaf_count + 1) * sizeof(*first));
    for (uint32_t h = 0; h < t->f->host_count; h++) {
        first[p->w->number[route_host_switch(t->f, h)] + 1]++;
    }
    for (uint32_t i = 0; i < p->w->leaf_count; i++) {
        first[i + 1] += first[i];
    }
    for (uint32_t h = t->f->host_count; h-- > 0;) {
        p->place[--first[p->w->number[route_host_switch(t->f, h)] + 1]] = p->place_of[h];
    }
    memmove(first, first + 1, p->w->leaf_count * sizeof(*first));
    first[p->w->leaf_count] = t->f->host_count;
}

/* What the stages of one LID offset cost: the sum of their busiest links. */
static uint64_t cost_of_stages(const struct polish *p)
{
    uint64_t sum = 0;

    for (uint32_t shift = 1; shift < p->places; shift++) {
        sum += p->peak[shift] > 0 ? p->peak[shift] : 1;
    }
    return sum;
}

static uint64_t polish_lids(struct polish *p, unsigned lids)
{
    uint64_t cost = 0;

    for (p->lid_offset = 0; p->lid_offset < lids; p->lid_offset++) {
        count_all(p);
        for (p->crowd = 3; p->crowd >= 2; p->crowd--) {
            for (unsigned pass = 0; pass < PASSES && improve_all(p); pass++) {
            }
        }
        cost += cost_of_stages(p);
    }
    return cost;
}

/* Moves routes off links where the flows of one shift meet; hosts are shifted over their places.
 * Returns the sum over all stages and LIDs of a host of the busiest link's flows. */
static uint64_t polish_order(const struct route_closed *c, const struct route_leaf_ways *w,
                             const uint32_t *place_of, uint32_t places)
{
    const struct ibshift_fabric *f = c->t->f;
    uint32_t switches = f->switch_count, leaves = w->leaf_count;
    struct pool pool = {NULL};
    struct polish p = {.c = c, .w = w, .place_of = place_of, .places = places};
    uint64_t cost;

    p.id = pool_new(&pool, f->port_count, sizeof(*p.id));
    p.place = pool_new(&pool, f->host_count, sizeof(*p.place));
    p.first_place = pool_new(&pool, (size_t)leaves + 1, sizeof(*p.first_place));
    p.head = pool_new(&pool, switches, sizeof(*p.head));
    p.next = pool_new(&pool, leaves, sizeof(*p.next));
    p.item = pool_new(&pool, leaves, sizeof(*p.item));
    number_links(&p);
    list_places(&p);
    p.flows = pool_new(&pool, (size_t)p.links * places, sizeof(*p.flows));
    p.links_with = pool_new(&pool, places, HEIGHTS * sizeof(*p.links_with));
    p.peak = pool_new(&pool, places, sizeof(*p.peak));
    cost = polish_lids(&p, ibshift_host_lid_count(f, 0));
    pool_free(&pool);
    return cost;
}

/* Which order damaged tables are made for: places of hosts that are gone cost stages. */

#define CELLS_MOST 150000000 /* 300 MB */

enum keepers { KEEP_ALL, KEEP_ON_LEAVES, KEEP_NONE, KEEP_COUNT };

struct chooser {
    struct route_closed *c;
    const struct route_leaf_ways *w;
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

static void try_order(struct chooser *x, enum keepers kept, uint32_t *order)
{
    struct ibshift_fabric *f = x->c->r->fabric;
    uint32_t places = compact(x->c, kept, order);
    uint64_t cost;

    if (places == x->last_places || (uint64_t)places * f->port_count > CELLS_MOST) {
        return;
    }
    x->last_places = places;
    for (uint32_t i = 0; i < places; i++) {
        if (order[i] != IBSHIFT_NO_HOST) {
            x->place_of[order[i]] = i;
        }
    }
    memcpy(f->lft, x->before, table_bytes(x));
    cost = polish_order(x->c, x->w, x->place_of, places);
    if (cost < x->best_cost) {
        x->best_cost = cost;
        x->best_kept = kept;
        memcpy(x->best, f->lft, table_bytes(x));
    }
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

void route_polish_orders(struct route_closed *c, const struct route_leaf_ways *w)
{
    struct route *r = c->r;
    struct pool pool = {NULL};
    struct chooser x = {.c = c, .w = w, .best_cost = UINT64_MAX};
    uint32_t *order;

    if (!is_even(c->t) || (uint64_t)c->t->f->host_count * c->t->f->port_count > CELLS_MOST) {
        return;
    }
    x.place_of = pool_new(&pool, c->t->f->host_count, sizeof(*x.place_of));
    x.before = pool_new(&pool, table_bytes(&x), 1);
    x.best = pool_new(&pool, table_bytes(&x), 1);
    order = pool_new(&pool, r->order_count, sizeof(*order));
    memcpy(x.before, r->fabric->lft, table_bytes(&x));
    memcpy(x.best, r->fabric->lft, table_bytes(&x));
    for (enum keepers kept = KEEP_ALL; kept < KEEP_COUNT; kept++) {
        try_order(&x, kept, order);
    }
    memcpy(r->fabric->lft, x.best, table_bytes(&x));
    r->order_count = compact(c, x.best_kept, order);
    memcpy(r->order, order, r->order_count * sizeof(*order));
    pool_free(&pool);
}
