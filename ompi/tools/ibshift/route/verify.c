#include "route/verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"

/* Dependencies between channels: bit (next port) of row [channel]. */
struct route_deps {
    unsigned vls;
    uint64_t *bits; /* [((link * vls) + vl) * vls + next vl][4] */
};

/* Next link of a packet to lid at switch sw, IBSHIFT_NO_PORT if none. */
static uint32_t route_next_link(const struct ibshift_fabric *f, uint32_t sw, unsigned lid)
{
    const struct ibshift_node *node = &f->nodes[f->switches[sw]];
    unsigned port = ibshift_lft_get(f, sw, lid);
    uint32_t link = node->first_port + port - 1;

    return port == 0 || port > node->port_count || f->ports[link].peer == IBSHIFT_NO_PORT
               ? IBSHIFT_NO_PORT
               : link;
}

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

/* Routes of one walk: between two hosts, and with a router or aggregation node at an end. */
struct trips {
    uint64_t hosts, others;
    bool must_arrive;
};

static struct trips trips_of(const struct walker *w, uint32_t leaf, uint32_t goal)
{
    const struct ibshift_fabric *f = w->r->fabric;
    uint32_t behind = f->ports[f->ports[goal].peer].node, sw = f->nodes[behind].switch_index;
    bool is_here = behind == f->switches[leaf];
    bool is_host = f->nodes[f->ports[goal].node].kind == IBSHIFT_NODE_HCA;
    bool is_on_switch = sw != IBSHIFT_NO_SWITCH;
    struct trips trips = {.must_arrive =
                              w->own[leaf] > 0 && (is_host || (is_on_switch && w->own[sw] > 0))};

    if (is_host) {
        trips.hosts = w->own[leaf] - is_here;
        trips.others = w->others[leaf];
    } else {
        trips.others = (uint64_t)w->own[leaf] + w->others[leaf] - is_here;
    }
    return trips;
}

static void count_failure(const struct walker *w, struct tally *tally, const struct trips *trips,
                          uint32_t leaf, unsigned lid, uint32_t at, bool is_circle)
{
    if (is_circle) {
        tally->proof.circles += trips->hosts + trips->others;
        tell(tally, w, leaf, lid, "in a circle", at);
    } else if (trips->must_arrive) {
        tally->proof.lost += trips->hosts + trips->others;
        tell(tally, w, leaf, lid, "no next hop", at);
    } else {
        tally->proof.others_lost += trips->others;
    }
}

static void count_arrival(const struct walker *w, struct tally *tally, const struct trips *trips,
                          uint32_t leaf, unsigned lid, uint32_t at, uint32_t links, bool is_stray)
{
    if (is_stray) {
        tally->proof.strays += trips->hosts + trips->others;
        tell(tally, w, leaf, lid, "arrives at another host", at);
    } else {
        tally->proof.hops[links < ROUTE_HOPS_MOST ? links : ROUTE_HOPS_MOST] += trips->hosts;
    }
}

static void walk(const struct walker *w, struct tally *tally, uint32_t leaf, unsigned lid,
                 uint32_t goal)
{
    const struct route *r = w->r;
    const struct ibshift_fabric *f = r->fabric;
    unsigned sl = r->sl == NULL ? 0 : r->sl[(size_t)leaf * f->lft_stride + lid];
    uint32_t sw = leaf, links = 1, before = IBSHIFT_NO_PORT;
    struct trips trips = trips_of(w, leaf, goal);
    bool is_base = lid == f->ports[goal].lid;
    unsigned in = 0, vl = 0;

    tally->proof.routes += trips.hosts;
    tally->proof.others += trips.others;
    while (trips.hosts + trips.others > 0) {
        uint32_t link = route_next_link(f, sw, lid), peer;

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
        if (before != IBSHIFT_NO_PORT) {
            unsigned next_vl = lane_of(r, sw, in, f->ports[link].number, sl);

            depend(w, before, vl, f->ports[link].number, next_vl);
            vl = next_vl;
        } else {
            vl = lane_of(r, sw, 0, f->ports[link].number, sl);
        }
        before = link;
        in = f->ports[peer].number;
        sw = f->nodes[f->ports[peer].node].switch_index;
    }
}

/* A packet to a switch's own LID; that a switch cannot be reached is told, not held against it. */
static void walk_to_switch(const struct walker *w, struct tally *tally, uint32_t leaf,
                           uint32_t target)
{
    const struct route *r = w->r;
    const struct ibshift_fabric *f = r->fabric;
    unsigned lid = f->nodes[f->switches[target]].lid, in = 0, vl = 0;
    unsigned sl = r->sl == NULL ? 0 : r->sl[(size_t)leaf * f->lft_stride + lid];
    uint32_t sw = leaf, before = IBSHIFT_NO_PORT;

    tally->proof.to_switches += leaf != target;
    for (uint32_t links = 0; sw != target; links++) {
        uint32_t link = links <= w->longest ? route_next_link(f, sw, lid) : IBSHIFT_NO_PORT;
        uint32_t peer = link == IBSHIFT_NO_PORT ? IBSHIFT_NO_PORT : f->ports[link].peer;
        unsigned next_vl;

        if (link == IBSHIFT_NO_PORT || !ibshift_node_is_switch(f, f->ports[peer].node)) {
            tally->proof.switches_lost++;
            return;
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

static int walk_lids(void *context, uint32_t first, uint32_t end)
{
    struct walker *w = context;
    const struct ibshift_fabric *f = w->r->fabric;
    struct tally tally = {.load = calloc((size_t)f->port_count + 1, sizeof(*tally.load))};

    if (tally.load == NULL) {
        return -ENOMEM;
    }
    for (uint32_t lid = first; lid < end; lid++) {
        uint32_t goal = f->lid_port[lid];

        for (uint32_t i = 0; goal != IBSHIFT_NO_PORT && i < w->leaf_count; i++) {
            walk(w, &tally, w->leaves[i], lid, goal);
        }
        for (uint32_t i = 0; w->switch_at[lid] != IBSHIFT_NO_SWITCH && i < w->leaf_count; i++) {
            if (w->own[w->leaves[i]] != 0) {
                walk_to_switch(w, &tally, w->leaves[i], w->switch_at[lid]);
            }
        }
    }
    add_tally(w, &tally);
    free(tally.load);
    return 0;
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
        uint32_t node = ibshift_port_neighbour(f, p);
        enum ibshift_node_kind kind = f->nodes[f->ports[p].node].kind;

        if (kind != IBSHIFT_NODE_SWITCH && node != IBSHIFT_NO_NODE &&
            ibshift_node_is_switch(f, node)) {
            (kind == IBSHIFT_NODE_HCA ? w->own : w->others)[f->nodes[node].switch_index]++;
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

static int walk_routes(const struct route *r, struct route_proof *proof, struct route_deps *deps,
                       struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    struct walker w = {.r = r,
                       .own = calloc((size_t)f->switch_count + 1, sizeof(*w.own)),
                       .others = calloc((size_t)f->switch_count + 1, sizeof(*w.others)),
                       .leaves = calloc((size_t)f->switch_count + 1, sizeof(*w.leaves)),
                       .switch_at = malloc((size_t)f->lft_stride * sizeof(*w.switch_at)),
                       .load = calloc((size_t)f->port_count + 1, sizeof(*w.load)),
                       .deps = deps,
                       .proof = proof};
    int rc = -ENOMEM;

    pthread_mutex_init(&w.lock, NULL);
    if (w.own != NULL && w.others != NULL && w.leaves != NULL && w.switch_at != NULL &&
        w.load != NULL) {
        find_leaves(&w);
        rc = route_parallel(r->threads, f->lft_stride, walk_lids, &w);
        sum_loads(&w);
    }
    pthread_mutex_destroy(&w.lock);
    free(w.own);
    free(w.others);
    free(w.leaves);
    free(w.switch_at);
    free(w.load);
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory to walk the routes");
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

static int find_cycle(const struct route *r, const struct route_deps *deps,
                      struct route_proof *proof, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    uint64_t channels = (uint64_t)f->port_count * deps->vls;
    struct search s = {.r = r,
                       .deps = deps,
                       .proof = proof,
                       .colour = calloc(channels + 1, sizeof(*s.colour)),
                       .stack = malloc((channels + 1) * sizeof(*s.stack)),
                       .at = malloc((channels + 1) * sizeof(*s.at))};
    bool ok = s.colour != NULL && s.stack != NULL && s.at != NULL, found = false;

    for (uint64_t c = 0; ok && !found && c < channels; c++) {
        if (s.colour[c] == WHITE && f->ports[c / deps->vls].peer != IBSHIFT_NO_PORT) {
            found = search_from(&s, c);
        }
    }
    free(s.colour);
    free(s.stack);
    free(s.at);
    return ok ? 0 : ibshift_fail(err, -ENOMEM, "no memory for %u links", f->port_count);
}

/*
 * Flows per link in each stage of the shift over the engine's order, place keepers in their places:
 * in stage k the host at place i sends to the one at place i + k.
 */

struct shifter {
    const struct route *r;
    const uint32_t *order;
    uint32_t places, shifts, lid_offset;
    uint64_t seed;
    uint32_t *leaf; /* [place]: switch */
    struct route_proof *proof;
    double sum;
    pthread_mutex_t lock;
};

static uint32_t shift_at(const struct shifter *s, uint32_t index)
{
    uint64_t state = s->seed + index;

    return s->seed == 0 ? index + 1 : 1 + ibshift_random_below(&state, s->places - 1);
}

struct stage {
    uint32_t *flows; /* [link] */
    uint32_t *used;  /* links with flows */
    uint32_t used_count, worst, link;
};

static void add_flow(const struct shifter *s, uint32_t from, uint32_t to, struct stage *stage)
{
    const struct ibshift_fabric *f = s->r->fabric;
    uint32_t host = s->order[to], sw = s->leaf[from];
    uint32_t goal = f->hosts[host];
    unsigned lids = ibshift_host_lid_count(f, host);
    unsigned lid = ibshift_host_lid(f, host) + (s->lid_offset < lids ? s->lid_offset : 0);

    for (unsigned hops = 0; hops <= f->switch_count; hops++) {
        uint32_t link = route_next_link(f, sw, lid), peer;

        if (link == IBSHIFT_NO_PORT) {
            return;
        }
        if (stage->flows[link]++ == 0) {
            stage->used[stage->used_count++] = link;
        }
        if (stage->flows[link] > stage->worst) {
            stage->worst = stage->flows[link];
            stage->link = link;
        }
        peer = f->ports[link].peer;
        if (peer == goal || !ibshift_node_is_switch(f, f->ports[peer].node)) {
            return;
        }
        sw = f->nodes[f->ports[peer].node].switch_index;
    }
}

static void count_stage(const struct shifter *s, uint32_t distance, struct stage *stage)
{
    stage->worst = 0;
    for (uint32_t i = 0; i < s->places; i++) {
        uint32_t to = i + distance < s->places ? i + distance : i + distance - s->places;

        if (s->order[i] != IBSHIFT_NO_HOST && s->order[to] != IBSHIFT_NO_HOST) {
            add_flow(s, i, to, stage);
        }
    }
    while (stage->used_count > 0) {
        stage->flows[stage->used[--stage->used_count]] = 0;
    }
}

static int count_stages(void *context, uint32_t first, uint32_t end)
{
    struct shifter *s = context;
    size_t links = (size_t)s->r->fabric->port_count + 1;
    struct stage stage = {.flows = calloc(links, sizeof(*stage.flows)),
                          .used = malloc(links * sizeof(*stage.used))};
    int rc = stage.flows == NULL || stage.used == NULL ? -ENOMEM : 0;

    for (uint32_t i = first; rc == 0 && i < end; i++) {
        uint32_t distance = shift_at(s, i);

        count_stage(s, distance, &stage);
        pthread_mutex_lock(&s->lock);
        s->sum += stage.worst;
        if (stage.worst > s->proof->worst ||
            (stage.worst == s->proof->worst && s->proof->worst_lid_offset == s->lid_offset &&
             distance < s->proof->worst_shift)) {
            s->proof->worst = stage.worst;
            s->proof->worst_shift = distance;
            s->proof->worst_link = stage.link;
            s->proof->worst_lid_offset = s->lid_offset;
        }
        pthread_mutex_unlock(&s->lock);
    }
    free(stage.flows);
    free(stage.used);
    return rc;
}

static uint32_t *every_host(const struct ibshift_fabric *f)
{
    uint32_t *hosts = malloc(((size_t)f->host_count + 1) * sizeof(*hosts));

    for (uint32_t h = 0; hosts != NULL && h < f->host_count; h++) {
        hosts[h] = h;
    }
    return hosts;
}

static int count_lids(struct shifter *s)
{
    const struct ibshift_fabric *f = s->r->fabric;
    struct route_proof *proof = s->proof;
    int rc = 0;

    for (uint32_t i = 0; i < s->places; i++) {
        uint32_t node = s->order[i] == IBSHIFT_NO_HOST
                            ? IBSHIFT_NO_NODE
                            : ibshift_port_neighbour(f, f->hosts[s->order[i]]);

        s->leaf[i] = node == IBSHIFT_NO_NODE ? 0 : f->nodes[node].switch_index;
    }
    proof->lids = route_most_lids(f);
    for (s->lid_offset = 0; rc == 0 && s->lid_offset < proof->lids; s->lid_offset++) {
        s->sum = 0;
        rc = route_parallel(s->r->threads, s->shifts, count_stages, s);
        if (s->shifts > 0 && s->sum / s->shifts > proof->average) {
            proof->average = s->sum / s->shifts;
        }
    }
    return rc;
}

static int count_shifts(const struct route *r, uint64_t seed, struct route_proof *proof,
                        struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    uint32_t *hosts = r->order == NULL ? every_host(f) : NULL;
    uint32_t places = r->order == NULL ? f->host_count : r->order_count;
    bool is_sampled = places > ROUTE_SHIFTS_ALL;
    struct shifter s = {.r = r,
                        .order = r->order == NULL ? hosts : r->order,
                        .places = places,
                        .shifts = is_sampled ? ROUTE_SHIFTS_SOME : places - 1,
                        .seed = is_sampled ? (seed != 0 ? seed : 1) : 0,
                        .leaf = calloc((size_t)places + 1, sizeof(*s.leaf)),
                        .proof = proof};
    int rc = -ENOMEM;

    proof->places = s.places;
    proof->shifts = s.shifts;
    proof->shift_seed = s.seed;
    pthread_mutex_init(&s.lock, NULL);
    if (s.order != NULL && s.leaf != NULL) {
        rc = count_lids(&s);
    }
    pthread_mutex_destroy(&s.lock);
    free(s.leaf);
    free(hosts);
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory to count the shifts");
}

static int prove_routes(const struct route *r, struct route_proof *proof, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    struct route_deps deps = {.vls = r->lanes.vl == NULL ? 1 : r->vls_used};
    int rc;

    memset(proof, 0, sizeof(*proof));
    deps.bits = calloc((size_t)f->port_count * deps.vls * deps.vls + 1, 4 * sizeof(*deps.bits));
    if (deps.bits == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the dependencies of %u links",
                            f->port_count);
    }
    rc = walk_routes(r, proof, &deps, err);
    if (rc == 0) {
        rc = find_cycle(r, &deps, proof, err);
    }
    free(deps.bits);
    return rc;
}

int route_verify(const struct route *r, uint64_t shift_seed, struct route_proof *proof,
                 struct ibshift_error *err)
{
    int rc = prove_routes(r, proof, err);

    return rc == 0 ? count_shifts(r, shift_seed, proof, err) : rc;
}

int route_verify_tables(const struct ibshift_fabric *f, struct route_proof *proof,
                        struct ibshift_error *err)
{
    struct ibshift_fabric tables = *f; /* walked, not changed */
    struct route r = {.fabric = &tables, .threads = 1, .vls = 1, .vls_used = 1};

    return prove_routes(&r, proof, err);
}
