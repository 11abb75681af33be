/* Tables from allowed turns: ways to each switch, shared out among links of the same length. */
#include "route/turns.h"

#include <errno.h>
#include <string.h>

/*
 * Short ways of all switches to one, as a tree whose turns are all allowed.
 *
 * A switch joins the tree over a neighbour that is in it, when the turn there is allowed; nearest
 * first. What a switch chose binds those that want to come over it, so the first tree may leave
 * switches on detours, or out. Then the ways they would have are tried: the switches along such a
 * way are told to take it, and the tree is built again; what makes the whole shorter stays.
 */

enum { NEVER = 1 << 20, TRIES_MOST = 4096, TRIES_LEAST = 16, TRIES_WORK = 1 << 24 };

struct search {
    const struct route_turns *t;
    uint32_t *shortest; /* [arc]: links from its start to the target over it, turns allowed */
    uint32_t *queue;    /* [arc] */
    uint32_t *told;     /* [switch]: arc that it must take, or UINT32_MAX */
    uint32_t *kept, *best_next, *best_length;
};

static void search_open(struct search *s, const struct route_turns *t, struct pool *pool)
{
    s->t = t;
    s->shortest = pool_new(pool, t->net.arc_count, sizeof(*s->shortest));
    s->queue = pool_new(pool, t->net.arc_count, sizeof(*s->queue));
    s->told = pool_new(pool, t->net.switches, sizeof(*s->told));
    s->kept = pool_new(pool, t->net.switches, sizeof(*s->kept));
    s->best_next = pool_new(pool, t->net.switches, sizeof(*s->best_next));
    s->best_length = pool_new(pool, t->net.switches, sizeof(*s->best_length));
}

/* From the target backwards, channel by channel, each switch free to choose by where one came
 * from: the bound that no table can beat. */
static void find_shortest(struct search *s, uint32_t target)
{
    const struct route_net *net = &s->t->net;
    uint32_t head = 0, tail = 0;

    memset(s->shortest, 0xff, net->arc_count * sizeof(*s->shortest));
    for (uint32_t out = net->first[target]; out < net->first[target + 1]; out++) {
        uint32_t in = net->arcs[out].back;

        s->shortest[in] = 1;
        s->queue[tail++] = in;
    }
    while (head < tail) {
        uint32_t next = s->queue[head++], from = net->arcs[next].from;

        for (uint32_t out = net->first[from]; from != target && out < net->first[from + 1]; out++) {
            uint32_t in = net->arcs[out].back;

            if (s->shortest[in] == UINT32_MAX && *route_turn(s->t, in, next)) {
                s->shortest[in] = s->shortest[next] + 1;
                s->queue[tail++] = in;
            }
        }
    }
}

/* How many neighbours could go on over this switch in a shortest way if it took arc. */
static uint32_t followers(const struct search *s, uint32_t arc)
{
    const struct route_net *net = &s->t->net;
    uint32_t sw = net->arcs[arc].from, count = 0;

    for (uint32_t out = net->first[sw]; out < net->first[sw + 1]; out++) {
        count += *route_turn(s->t, net->arcs[out].back, arc);
    }
    return count;
}

/* The arc by which a switch joins at this length, or UINT32_MAX. */
static uint32_t way_in(const struct search *s, const struct route_ways *ways, uint32_t sw,
                       uint32_t length)
{
    const struct route_net *net = &s->t->net;
    uint32_t best = UINT32_MAX, most = 0;

    for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
        uint32_t to = net->arcs[a].to, next = ways->next[to], count;

        if (ways->length[to] != length - 1 || (s->told[sw] != UINT32_MAX && s->told[sw] != a) ||
            (next != UINT32_MAX && !*route_turn(s->t, a, next))) {
            continue;
        }
        count = followers(s, a);
        if (best == UINT32_MAX || count > most) {
            best = a;
            most = count;
        }
    }
    return best;
}

/* The tree; the sum of its lengths, NEVER for a switch that is left out. */
static uint64_t build(const struct search *s, uint32_t target, struct route_ways *ways)
{
    const struct route_net *net = &s->t->net;
    uint32_t left = net->switches - 1;
    uint64_t sum = 0;
    bool has_grown = true;

    memset(ways->next, 0xff, net->switches * sizeof(*ways->next));
    memset(ways->length, 0xff, net->switches * sizeof(*ways->length));
    ways->length[target] = 0;
    for (uint32_t length = 1; left > 0 && has_grown; length++) {
        has_grown = false;
        for (uint32_t sw = 0; sw < net->switches; sw++) {
            uint32_t arc =
                ways->length[sw] == UINT32_MAX ? way_in(s, ways, sw, length) : UINT32_MAX;

            if (arc != UINT32_MAX) {
                ways->next[sw] = arc;
                ways->length[sw] = length;
                sum += length;
                left--;
                has_grown = true;
            }
        }
    }
    return sum + (uint64_t)left * NEVER;
}

/* Tells the switches along the shortest way of sw to take it. */
static void tell_way(struct search *s, uint32_t sw, uint32_t target)
{
    const struct route_net *net = &s->t->net;
    uint32_t came = UINT32_MAX;

    while (sw != target) {
        uint32_t best = UINT32_MAX;

        for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
            if ((came == UINT32_MAX || *route_turn(s->t, came, a)) &&
                (best == UINT32_MAX || s->shortest[a] < s->shortest[best])) {
                best = a;
            }
        }
        if (best == UINT32_MAX || s->shortest[best] == UINT32_MAX) {
            return;
        }
        s->told[sw] = best;
        came = best;
        sw = net->arcs[best].to;
    }
}

static uint32_t bound_of(const struct search *s, uint32_t sw)
{
    const struct route_net *net = &s->t->net;
    uint32_t bound = UINT32_MAX;

    for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
        bound = s->shortest[a] < bound ? s->shortest[a] : bound;
    }
    return bound;
}

/* One round over the switches on detours; whether something became shorter. */
static bool improve(struct search *s, uint32_t target, struct route_ways *ways, uint64_t *sum,
                    unsigned *tries)
{
    const struct route_net *net = &s->t->net;
    size_t bytes = net->switches * sizeof(uint32_t);
    bool is_better = false;

    for (uint32_t sw = 0; sw<net->switches && * tries> 0; sw++) {
        uint64_t now;

        if (sw == target || s->best_length[sw] <= bound_of(s, sw)) {
            continue;
        }
        memcpy(s->kept, s->told, bytes);
        tell_way(s, sw, target);
        now = build(s, target, ways);
        --*tries;
        if (now < *sum) {
            *sum = now;
            memcpy(s->best_next, ways->next, bytes);
            memcpy(s->best_length, ways->length, bytes);
            is_better = true;
        } else {
            memcpy(s->told, s->kept, bytes);
        }
    }
    return is_better;
}

/* The ways of the spanning tree, for all that a way leads over: from switches that were left out,
 * or from all. Its turns are all allowed. */
static void tell_tree(struct search *s, uint32_t target, const struct route_ways *ways, bool all)
{
    const struct route_turns *t = s->t;
    uint32_t sw = target;

    while (t->parent[sw] != UINT32_MAX) { /* from the root down to the target */
        const struct route_arc *up = &t->net.arcs[t->parent[sw]];

        s->told[up->to] = up->back;
        sw = up->to;
    }
    for (sw = 0; sw < t->net.switches; sw++) {
        uint32_t at = sw;

        while ((all || ways->length[sw] == UINT32_MAX) && at != target &&
               s->told[at] == UINT32_MAX) {
            s->told[at] = t->parent[at];
            at = t->net.arcs[t->parent[at]].to;
        }
    }
}

static bool search_ways(struct search *s, uint32_t target, struct route_ways *ways)
{
    size_t bytes = s->t->net.switches * sizeof(uint32_t);
    uint64_t switches = s->t->net.switches, work = TRIES_WORK / (switches * switches);
    unsigned tries = work < TRIES_LEAST  ? TRIES_LEAST
                     : work > TRIES_MOST ? TRIES_MOST
                                         : (unsigned)work;
    uint64_t sum;

    find_shortest(s, target);
    memset(s->told, 0xff, bytes);
    sum = build(s, target, ways);
    for (int all = 0; all < 2 && sum >= NEVER; all++) {
        tell_tree(s, target, ways, all != 0);
        sum = build(s, target, ways);
    }
    memcpy(s->best_next, ways->next, bytes);
    memcpy(s->best_length, ways->length, bytes);
    while (improve(s, target, ways, &sum, &tries)) {
    }
    memcpy(ways->next, s->best_next, bytes);
    memcpy(ways->length, s->best_length, bytes);
    return sum < NEVER;
}

enum { ROUNDS = 12 };

struct filler {
    struct route *r;
    const struct route_turns *turns;
    struct search search;
    struct route_ways *ways; /* [target]: to it */
    uint64_t *load;          /* [arc] */
    uint64_t *carry;         /* [switch] */
    uint32_t *order;         /* [switch] */
};

/* Farthest first, into order. */
static void sort_by_length(const struct route_ways *ways, uint32_t switches, uint32_t *order)
{
    uint32_t count = 0, longest = 0;

    for (uint32_t s = 0; s < switches; s++) {
        longest = ways->length[s] > longest ? ways->length[s] : longest;
    }
    for (uint32_t length = longest + 1; length-- > 0;) {
        for (uint32_t s = 0; s < switches; s++) {
            if (ways->length[s] == length) {
                order[count++] = s;
            }
        }
    }
}

/* Whether s may take arc: as long, allowed, and allowed for all that come over s. */
static bool may_take(const struct filler *f, const struct route_ways *ways, uint32_t s,
                     uint32_t arc)
{
    const struct route_net *net = &f->turns->net;
    uint32_t to = net->arcs[arc].to;

    if (ways->length[to] + 1 != ways->length[s] ||
        (ways->next[to] != UINT32_MAX && !*route_turn(f->turns, arc, ways->next[to]))) {
        return false;
    }
    for (uint32_t out = net->first[s]; out < net->first[s + 1]; out++) {
        uint32_t in = net->arcs[out].back;

        if (ways->next[net->arcs[out].to] == in && !*route_turn(f->turns, in, arc)) {
            return false;
        }
    }
    return true;
}

/* What carrying more costs: squares, so that the fullest link counts most. */
static uint64_t cost_of_way(const struct filler *f, const struct route_ways *ways, uint32_t arc,
                            uint64_t weight)
{
    uint64_t cost = 0;

    while (arc != UINT32_MAX) {
        cost += weight * (2 * f->load[arc] + weight);
        arc = ways->next[f->turns->net.arcs[arc].to];
    }
    return cost;
}

static void add_way(struct filler *f, const struct route_ways *ways, uint32_t arc, uint64_t weight)
{
    while (arc != UINT32_MAX) {
        f->load[arc] += weight;
        arc = ways->next[f->turns->net.arcs[arc].to];
    }
}

/* Each switch, farthest first, takes the way that costs least; the loads follow. */
static bool rebalance(struct filler *f, struct route_ways *ways)
{
    const struct route_net *net = &f->turns->net;
    bool has_moved = false;

    sort_by_length(ways, net->switches, f->order);
    for (uint32_t s = 0; s < net->switches; s++) {
        f->carry[s] = net->hosts[s];
    }
    for (uint32_t i = 0; i < net->switches; i++) {
        uint32_t s = f->order[i], best = ways->next[s];
        uint64_t least;

        if (best == UINT32_MAX) {
            continue;
        }
        add_way(f, ways, best, -f->carry[s]);
        least = cost_of_way(f, ways, best, f->carry[s]);
        for (uint32_t a = net->first[s]; a < net->first[s + 1]; a++) {
            uint64_t cost =
                may_take(f, ways, s, a) ? cost_of_way(f, ways, a, f->carry[s]) : UINT64_MAX;

            if (cost < least) {
                least = cost;
                best = a;
                has_moved = true;
            }
        }
        ways->next[s] = best;
        add_way(f, ways, best, f->carry[s]);
        f->carry[net->arcs[best].to] += f->carry[s];
    }
    return has_moved;
}

static void open_filler(struct filler *f, struct pool *pool)
{
    const struct route_net *net = &f->turns->net;
    size_t switches = net->switches;
    uint32_t *cells = pool_new(pool, net->target_count, 2 * switches * sizeof(*cells));

    search_open(&f->search, f->turns, pool);
    f->ways = pool_new(pool, net->target_count, sizeof(*f->ways));
    f->load = pool_new(pool, net->arc_count, sizeof(*f->load));
    f->carry = pool_new(pool, switches, sizeof(*f->carry));
    f->order = pool_new(pool, switches, sizeof(*f->order));
    for (size_t i = 0; i < net->target_count; i++) {
        f->ways[i].next = cells + i * 2 * switches;
        f->ways[i].length = f->ways[i].next + switches;
    }
}

/* LIDs of one switch begin with the same ways. */
static int find_ways(struct filler *f, struct ibshift_error *err)
{
    const struct route_net *net = &f->turns->net;
    size_t bytes = net->switches * sizeof(uint32_t);

    for (uint32_t i = 0; i < net->target_count; i++) {
        uint32_t sw = net->targets[i].sw;

        if (i > 0 && net->targets[i - 1].sw == sw) {
            memcpy(f->ways[i].next, f->ways[i - 1].next, bytes);
            memcpy(f->ways[i].length, f->ways[i - 1].length, bytes);
        } else if (!search_ways(&f->search, sw, &f->ways[i])) {
            return ibshift_fail(err, -ENOTSUP,
                                "the permitted turns leave a switch without a route to switch '%s'",
                                route_net_name(net, sw));
        }
        for (uint32_t s = 0; s < net->switches; s++) {
            add_way(f, &f->ways[i], f->ways[i].next[s], net->hosts[s]);
        }
    }
    return 0;
}

static void share_out(struct filler *f)
{
    bool has_moved = true;

    for (int round = 0; round < ROUNDS && has_moved; round++) {
        has_moved = false;
        for (uint32_t i = 0; i < f->turns->net.target_count; i++) {
            has_moved |= rebalance(f, &f->ways[i]);
        }
    }
}

static void write_tables(const struct filler *f)
{
    const struct route_net *net = &f->turns->net;
    struct ibshift_fabric *fabric = f->r->fabric;

    for (uint32_t i = 0; i < net->target_count; i++) {
        for (uint32_t s = 0; s < net->switches; s++) {
            uint32_t arc = f->ways[i].next[s];

            fabric->lft[(size_t)s * fabric->lft_stride + net->targets[i].lid] =
                arc == UINT32_MAX ? net->targets[i].port : net->arcs[arc].port;
        }
    }
}

int route_turns_fill(struct route *r, const struct route_turns *turns, uint64_t *squares,
                     struct ibshift_error *err)
{
    struct pool pool = {NULL};
    struct filler f = {.r = r, .turns = turns};
    int rc;

    open_filler(&f, &pool);
    rc = find_ways(&f, err);
    if (rc == 0) {
        share_out(&f);
        write_tables(&f);
        *squares = 0;
        for (uint32_t a = 0; a < turns->net.arc_count; a++) {
            *squares += f.load[a] * f.load[a];
        }
    }
    pool_free(&pool);
    return rc;
}
