#include "route/verify.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Dependencies between channels: bit (next port) of row [channel]. */
struct route_deps {
    unsigned vls;
    uint64_t *bits; /* [((link * vls) + vl) * vls + next vl][4] */
};

/*
 * Every route from every switch with hosts, routers or aggregation nodes to the LIDs of all of
 * them, one LID after the other.
 *
 * Routes between switches with hosts must arrive. An aggregation node may hang on a spine, which in
 * a tree has no way to another spine, or to a leaf whose cable is missing: as with the switch's own
 * LID, that is counted and not held against the tables. Circles and wrong ends always are.
 */

struct walker {
    const struct route *r;
    uint32_t *own;    /* [switch]: hosts */
    uint32_t *others; /* [switch]: ports of routers and aggregation nodes on it */
    uint32_t *leaves; /* switches with any of them */
    uint32_t leaf_count;
    uint32_t *switch_at; /* [LID]: the switch that owns it, or IBSHIFT_NO_SWITCH */
    uint32_t longest;    /* links that no loop-free route exceeds */
    struct route_deps *deps;
    struct route_proof *proof;
    uint32_t *load; /* [link] */
    pthread_mutex_t lock;
};

/* Counts of one part of the LIDs. */
struct tally {
    struct route_proof proof;
    uint32_t *load;
};

static void depend(const struct walker *w, uint32_t link, unsigned vl, unsigned port,
                   unsigned next_vl)
{
    uint64_t *row =
        w->deps->bits + (((size_t)link * w->deps->vls + vl) * w->deps->vls + next_vl) * 4;
    uint64_t bit = 1ull << (port & 63), *word = &row[port >> 6];

    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0) {
        __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    }
}

static unsigned lane_of(const struct route *r, uint32_t sw, unsigned in, unsigned out, unsigned sl)
{
    return r->lanes.vl == NULL
               ? 0
               : r->lanes.vl[fabric_sl2vl_at(r->fabric, &r->lanes, sw, in, out, sl)];
}

static void tell(struct tally *tally, const struct walker *w, uint32_t leaf, unsigned lid,
                 const char *what, uint32_t at)
{
    const struct ibshift_fabric *f = w->r->fabric;

    if (tally->proof.broken[0] == '\0') {
        snprintf(tally->proof.broken, sizeof(tally->proof.broken),
                 "from switch '%s' to '%s' (LID %u): %s at '%s'",
                 ibshift_node_name(f, f->switches[leaf]),
                 ibshift_node_name(f, f->ports[f->lid_port[lid]].node), lid, what,
                 ibshift_node_name(f, f->switches[at]));
    }
}

/* What one walk stands for: routes between two hosts, with a router or aggregation node at an end, to a
 * switch's own LID. */
struct trips {
    uint64_t hosts, others, switches;
    bool must_arrive;
};

static struct trips trips_of(const struct walker *w, uint32_t leaf, uint32_t goal)
{
    const struct ibshift_fabric *f = w->r->fabric;
    uint32_t behind = ibshift_port_neighbour(f, goal), sw = ibshift_switch_behind(f, goal);
    bool is_here = behind == f->switches[leaf];
    bool is_host = f->nodes[f->ports[goal].node].kind == IBSHIFT_NODE_HCA;
    struct trips trips = {.must_arrive = w->own[leaf] > 0 &&
                                         (is_host || (sw != IBSHIFT_NO_SWITCH && w->own[sw] > 0))};

    if (behind == IBSHIFT_NO_NODE) { /* its cable is gone, and no route to it is wanted */
        return (struct trips){.must_arrive = false};
    }
    if (is_host) {
        trips.hosts = w->own[leaf] - is_here;
        trips.others = w->others[leaf];
    } else {
        trips.others = (uint64_t)w->own[leaf] + w->others[leaf] - is_here;
    }
    return trips;
}

/* It ends at switch `at`: that another switch cannot be reached is told, not held against the tables. */
static void count_failure(const struct walker *w, struct tally *tally, const struct trips *trips,
                          uint32_t leaf, unsigned lid, uint32_t at, bool is_circle)
{
    if (trips->switches > 0) {
        tally->proof.switches_lost += trips->switches;
    } else if (is_circle) {
        tally->proof.circles += trips->hosts + trips->others;
        tell(tally, w, leaf, lid, "in a circle", at);
    } else if (trips->must_arrive) {
        tally->proof.lost += trips->hosts + trips->others;
        tell(tally, w, leaf, lid, "no next hop", at);
    } else {
        tally->proof.others_lost += trips->others;
    }
}

/* It leaves the switches at `at`, for a port that is no switch's. */
static void count_arrival(const struct walker *w, struct tally *tally, const struct trips *trips,
                          uint32_t leaf, unsigned lid, uint32_t at, uint32_t links, bool is_stray)
{
    if (trips->switches > 0) {
        tally->proof.switches_lost += trips->switches;
    } else if (is_stray) {
        tally->proof.strays += trips->hosts + trips->others;
        tell(tally, w, leaf, lid, "arrives at another host", at);
    } else {
        tally->proof.hops[links < ROUTE_HOPS_MOST ? links : ROUTE_HOPS_MOST] += trips->hosts;
    }
}

/* To the port that is the goal, or to the switch that is the target: the other one is none. */
static void walk(const struct walker *w, struct tally *tally, uint32_t leaf, unsigned lid,
                 uint32_t goal, uint32_t target)
{
    const struct route *r = w->r;
    const struct ibshift_fabric *f = r->fabric;
    unsigned sl = r->sl == NULL ? 0 : r->sl[(size_t)leaf * f->lft_stride + lid], in = 0, vl = 0;
    uint32_t sw = leaf, links = 1, before = IBSHIFT_NO_PORT;
    struct trips trips = {.switches = leaf != target};
    bool is_base = goal != IBSHIFT_NO_PORT && lid == f->ports[goal].lid;

    if (target == IBSHIFT_NO_SWITCH) {
        trips = trips_of(w, leaf, goal);
    }
    tally->proof.routes += trips.hosts;
    tally->proof.others += trips.others;
    tally->proof.to_switches += trips.switches;
    while (trips.hosts + trips.others + trips.switches > 0 && sw != target) {
        uint32_t link = route_next_link(f, sw, lid), peer;
        unsigned next_vl;

        if (link == IBSHIFT_NO_PORT || links > w->longest) {
            count_failure(w, tally, &trips, leaf, lid, sw, link != IBSHIFT_NO_PORT);
            return;
        }
        peer = f->ports[link].peer;
        links++;
        if (!ibshift_node_is_switch(f, f->ports[peer].node)) {
            count_arrival(w, tally, &trips, leaf, lid, sw, links, peer != goal);
            return;
        }
        if (is_base) {
            tally->load[link] += trips.hosts;
        }
        next_vl = lane_of(r, sw, in, f->ports[link].number, sl);
        if (before != IBSHIFT_NO_PORT) {
            depend(w, before, vl, f->ports[link].number, next_vl);
        }
        vl = next_vl;
        before = link;
        in = f->ports[peer].number;
        sw = f->nodes[f->ports[peer].node].switch_index;
    }
}

static void add_tally(struct walker *w, const struct tally *tally)
{
    const struct route_proof *part = &tally->proof;
    struct route_proof *all = w->proof;

    pthread_mutex_lock(&w->lock);
    all->routes += part->routes;
    all->to_switches += part->to_switches;
    all->switches_lost += part->switches_lost;
    all->others += part->others;
    all->others_lost += part->others_lost;
    all->lost += part->lost;
    all->circles += part->circles;
    all->strays += part->strays;
    for (unsigned i = 0; i <= ROUTE_HOPS_MOST; i++) {
        all->hops[i] += part->hops[i];
    }
    if (all->broken[0] == '\0') {
        memcpy(all->broken, part->broken, sizeof(all->broken));
    }
    for (uint32_t p = 0; p < w->r->fabric->port_count; p++) {
        w->load[p] += tally->load[p];
    }
    pthread_mutex_unlock(&w->lock);
}

static void walk_lids(void *context, uint32_t first, uint32_t end)
{
    struct walker *w = context;
    const struct ibshift_fabric *f = w->r->fabric;
    struct pool pool = {NULL};
    struct tally tally = {.load = pool_new(&pool, f->port_count, sizeof(*tally.load))};

    for (uint32_t lid = first; lid < end; lid++) {
        uint32_t goal = f->lid_port[lid];

        for (uint32_t i = 0; goal != IBSHIFT_NO_PORT && i < w->leaf_count; i++) {
            walk(w, &tally, w->leaves[i], lid, goal, IBSHIFT_NO_SWITCH);
        }
        for (uint32_t i = 0; w->switch_at[lid] != IBSHIFT_NO_SWITCH && i < w->leaf_count; i++) {
            if (w->own[w->leaves[i]] != 0) {
                walk(w, &tally, w->leaves[i], lid, IBSHIFT_NO_PORT, w->switch_at[lid]);
            }
        }
    }
    add_tally(w, &tally);
    pool_free(&pool);
}

static void sum_loads(const struct walker *w)
{
    const struct ibshift_fabric *f = w->r->fabric;
    struct route_proof *proof = w->proof;
    uint64_t sum = 0;

    proof->load_least = UINT32_MAX;
    for (uint32_t p = 0; p < f->port_count; p++) {
        if (w->load[p] != 0) {
            proof->links_used++;
            sum += w->load[p];
            proof->load_least = w->load[p] < proof->load_least ? w->load[p] : proof->load_least;
            if (w->load[p] > proof->load_most) {
                proof->load_most = w->load[p];
                proof->load_link = p;
            }
        }
    }
    proof->load_mean = proof->links_used > 0 ? (double)sum / proof->links_used : 0;
    proof->load_least = proof->links_used > 0 ? proof->load_least : 0;
}

static void find_leaves(struct walker *w)
{
    const struct ibshift_fabric *f = w->r->fabric;

    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t sw = ibshift_switch_behind(f, p);
        enum ibshift_node_kind kind = f->nodes[f->ports[p].node].kind;

        if (kind != IBSHIFT_NODE_SWITCH && sw != IBSHIFT_NO_SWITCH) {
            (kind == IBSHIFT_NODE_HCA ? w->own : w->others)[sw]++;
        }
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (w->own[s] != 0 || w->others[s] != 0) {
            w->leaves[w->leaf_count++] = s;
        }
    }
    memset(w->switch_at, 0xff, f->lft_stride * sizeof(*w->switch_at));
    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (f->nodes[f->switches[s]].lid != 0) {
            w->switch_at[f->nodes[f->switches[s]].lid] = s;
        }
    }
    w->longest = f->switch_count + 1;
}

static void walk_routes(const struct route *r, struct route_proof *proof, struct route_deps *deps)
{
    const struct ibshift_fabric *f = r->fabric;
    struct pool pool = {NULL};
    struct walker w = {.r = r,
                       .own = pool_new(&pool, f->switch_count, sizeof(*w.own)),
                       .others = pool_new(&pool, f->switch_count, sizeof(*w.others)),
                       .leaves = pool_new(&pool, f->switch_count, sizeof(*w.leaves)),
                       .switch_at = pool_new(&pool, f->lft_stride, sizeof(*w.switch_at)),
                       .load = pool_new(&pool, f->port_count, sizeof(*w.load)),
                       .deps = deps,
                       .proof = proof,
                       .lock = PTHREAD_MUTEX_INITIALIZER};

    find_leaves(&w);
    route_parallel(r->threads, f->lft_stride, walk_lids, &w);
    sum_loads(&w);
    pool_free(&pool);
}

/* Is the channel dependency graph acyclic? A depth-first search without recursion. */

enum colour { WHITE, OPEN, DONE };

struct search {
    const struct route *r;
    const struct route_deps *deps;
    struct route_proof *proof;
    uint8_t *colour; /* [channel] */
    uint64_t *stack; /* channels */
    uint32_t *at;    /* [depth]: next (vl, port) to look at */
    uint64_t depth;
};

static uint64_t channel_of(const struct search *s, uint32_t link, unsigned vl)
{
    return (uint64_t)link * s->deps->vls + vl;
}

/* The next dependency of the channel at or after *at = vl * 256 + port, or -1. */
static int64_t next_dependency(const struct search *s, uint64_t channel, uint32_t *at)
{
    const struct ibshift_fabric *f = s->r->fabric;
    uint32_t peer = f->ports[channel / s->deps->vls].peer;
    uint32_t node = f->ports[peer].node;

    for (; *at < s->deps->vls * 256; (*at)++) {
        const uint64_t *row = s->deps->bits + (channel * s->deps->vls + (*at >> 8)) * 4;
        unsigned port = *at & 255;
        uint64_t word = row[port >> 6] >> (port & 63);

        if (word == 0) {
            *at |= 63;
            continue;
        }
        *at += (unsigned)__builtin_ctzll(word);
        port = *at & 255;
        s->proof->dependencies++;
        (*at)++;
        return (int64_t)channel_of(s, ibshift_node_port(f, node, port), (*at - 1) >> 8);
    }
    return -1;
}

static void tell_cycle(struct search *s, uint64_t closing)
{
    uint64_t start = s->depth;

    while (start > 0 && s->stack[start - 1] != closing) {
        start--;
    }
    start = start > 0 ? start - 1 : 0;
    s->proof->cycle_length = (unsigned)(s->depth - start);
    for (uint64_t i = start; i < s->depth && i - start < ROUTE_CYCLE_MOST; i++) {
        s->proof->cycle[i - start] = (struct route_channel){(uint32_t)(s->stack[i] / s->deps->vls),
                                                            (unsigned)(s->stack[i] % s->deps->vls)};
    }
}

/* True: a cycle was found. */
static bool search_from(struct search *s, uint64_t channel)
{
    s->depth = 1;
    s->stack[0] = channel;
    s->at[0] = 0;
    s->colour[channel] = OPEN;
    while (s->depth > 0) {
        int64_t next = next_dependency(s, s->stack[s->depth - 1], &s->at[s->depth - 1]);

        if (next < 0) {
            s->colour[s->stack[--s->depth]] = DONE;
        } else if (s->colour[next] == OPEN) {
            tell_cycle(s, (uint64_t)next);
            return true;
        } else if (s->colour[next] == WHITE) {
            s->colour[next] = OPEN;
            s->stack[s->depth] = (uint64_t)next;
            s->at[s->depth++] = 0;
        }
    }
    return false;
}

static void find_cycle(const struct route *r, const struct route_deps *deps,
                       struct route_proof *proof)
{
    const struct ibshift_fabric *f = r->fabric;
    uint64_t channels = (uint64_t)f->port_count * deps->vls;
    struct pool pool = {NULL};
    struct search s = {.r = r,
                       .deps = deps,
                       .proof = proof,
                       .colour = pool_new(&pool, channels, sizeof(*s.colour)),
                       .stack = pool_new(&pool, channels, sizeof(*s.stack)),
                       .at = pool_new(&pool, channels, sizeof(*s.at))};
    bool found = false;

    for (uint64_t c = 0; !found && c < channels; c++) {
        if (s.colour[c] == WHITE && f->ports[c / deps->vls].peer != IBSHIFT_NO_PORT) {
            found = search_from(&s, c);
        }
    }
    pool_free(&pool);
}

static void prove_routes(const struct route *r, struct route_proof *proof)
{
    struct pool pool = {NULL};
    struct route_deps deps = {.vls = r->lanes.vl == NULL ? 1 : r->vls_used};

    *proof = (struct route_proof){.routes = 0};
    deps.bits = pool_new(&pool, (size_t)r->fabric->port_count * deps.vls * deps.vls,
                         4 * sizeof(*deps.bits));
    walk_routes(r, proof, &deps);
    find_cycle(r, &deps, proof);
    pool_free(&pool);
}

void route_verify(const struct route *r, uint64_t shift_seed, struct route_proof *proof)
{
    prove_routes(r, proof);
    route_count_shifts(r, shift_seed, proof);
}

void route_verify_tables(const struct ibshift_fabric *f, struct route_proof *proof)
{
    struct ibshift_fabric tables = *f; /* walked, not changed */
    struct route r = {.fabric = &tables, .threads = 1, .vls = 1, .vls_used = 1};

    prove_routes(&r, proof);
}

/* Service level n on VL n, of a route for what the fabric knows of each pair. */
static int take_levels(struct route *r, unsigned vls)
{
    const struct ibshift_fabric *f = r->fabric;
    struct ibshift_error err;
    uint32_t *row_of;

    if (route_lanes_new(r, vls, &err) != 0) {
        return -ENOTSUP;
    }
    row_of = pool_new(&r->pool, f->switch_count, sizeof(*row_of)); /* + 1 */
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t leaf = ibshift_switch_behind(f, f->hosts[h]);

        if (leaf == IBSHIFT_NO_SWITCH || (row_of[leaf] != 0 && row_of[leaf] != f->sl_row[h] + 1)) {
            return -ENOTSUP;
        }
        row_of[leaf] = f->sl_row[h] + 1;
        memcpy(r->sl + (size_t)leaf * f->lft_stride, f->sl + (size_t)f->sl_row[h] * f->lft_stride,
               f->lft_stride);
    }
    for (uint32_t sw = 0; sw < f->switch_count; sw++) {
        size_t ports = f->nodes[f->switches[sw]].port_count + 1u;
        uint8_t *vl = r->lanes.vl + r->lanes.from[sw];

        for (size_t i = 0; i < ports * ports * FABRIC_SLS; i++) {
            vl[i] = (uint8_t)(i % FABRIC_SLS % vls);
        }
    }
    return 0;
}

int route_verify_levels(const struct ibshift_fabric *f, unsigned *vls, struct route_proof *proof)
{
    struct ibshift_fabric tables = *f; /* walked, not changed */
    struct route r = {.fabric = &tables, .threads = 1, .vls = FABRIC_SLS};
    int rc = f->sl == NULL ? -ENODATA : 0;

    for (*vls = 0; fabric_sls_used(f) >> *vls != 0;) {
        (*vls)++;
    }
    rc = rc == 0 ? take_levels(&r, *vls) : rc;
    if (rc == 0) {
        prove_routes(&r, proof);
    }
    fabric_sl2vl_free(&r.lanes);
    pool_free(&r.pool);
    return rc;
}
