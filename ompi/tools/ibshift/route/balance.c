/* Tables from allowed turns: ways to each switch, shared out among links of the same length. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route/turns.h"

enum { ROUNDS = 12 };

struct filler {
    struct route *r;
    const struct route_turns *turns;
    struct route_search *search;
    struct route_ways *ways; /* [switch]: to it */
    uint32_t *memory;
    uint64_t *load;   /* [arc] */
    uint64_t *carry;  /* [switch] */
    uint32_t *order;  /* [switch] */
    uint32_t *weight; /* [switch]: hosts, of which routes start */
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

/* Adds the routes to a target to the loads, or takes them away. */
static void count(struct filler *f, const struct route_ways *ways, bool adds)
{
    const struct route_net *net = f->turns->net;

    sort_by_length(ways, net->switches, f->order);
    for (uint32_t s = 0; s < net->switches; s++) {
        f->carry[s] = f->weight[s];
    }
    for (uint32_t i = 0; i < net->switches; i++) {
        uint32_t s = f->order[i], arc = ways->next[s];

        if (arc != UINT32_MAX) {
            f->load[arc] += adds ? f->carry[s] : -f->carry[s];
            f->carry[net->arcs[arc].to] += f->carry[s];
        }
    }
}

/* Whether s may take arc: as long, allowed, and allowed for all that come over s. */
static bool may_take(const struct filler *f, const struct route_ways *ways, uint32_t s,
                     uint32_t arc)
{
    const struct route_net *net = f->turns->net;
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
        arc = ways->next[f->turns->net->arcs[arc].to];
    }
    return cost;
}

static void add_way(struct filler *f, const struct route_ways *ways, uint32_t arc, uint64_t weight)
{
    while (arc != UINT32_MAX) {
        f->load[arc] += weight;
        arc = ways->next[f->turns->net->arcs[arc].to];
    }
}

/* Each switch, farthest first, takes the way that costs least; the loads follow. */
static bool rebalance(struct filler *f, struct route_ways *ways)
{
    const struct route_net *net = f->turns->net;
    bool has_moved = false;

    sort_by_length(ways, net->switches, f->order);
    for (uint32_t s = 0; s < net->switches; s++) {
        f->carry[s] = f->weight[s];
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

static int open_filler(struct filler *f, struct route *r, const struct route_turns *turns,
                       struct ibshift_error *err)
{
    size_t switches = (size_t)turns->net->switches + 1, targets = turns->net->target_count;

    *f = (struct filler){.r = r,
                         .turns = turns,
                         .search = route_search_new(turns),
                         .ways = calloc(targets + 1, sizeof(*f->ways)),
                         .memory = malloc((targets + 1) * 2 * switches * sizeof(*f->memory)),
                         .load = calloc((size_t)turns->net->arc_count + 1, sizeof(*f->load)),
                         .carry = malloc(switches * sizeof(*f->carry)),
                         .order = malloc(switches * sizeof(*f->order)),
                         .weight = malloc(switches * sizeof(*f->weight))};
    if (f->search == NULL || f->ways == NULL || f->memory == NULL || f->load == NULL ||
        f->carry == NULL || f->order == NULL || f->weight == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for ways to %zu LIDs", targets);
    }
    for (size_t i = 0; i < targets; i++) {
        f->ways[i].next = f->memory + i * 2 * switches;
        f->ways[i].length = f->ways[i].next + switches;
    }
    memcpy(f->weight, turns->net->hosts, (switches - 1) * sizeof(*f->weight));
    return 0;
}

static void close_filler(struct filler *f)
{
    route_search_free(f->search);
    free(f->ways);
    free(f->memory);
    free(f->load);
    free(f->carry);
    free(f->order);
    free(f->weight);
}

/* LIDs of one switch begin with the same ways. */
static int find_ways(struct filler *f, struct ibshift_error *err)
{
    const struct route_net *net = f->turns->net;
    size_t bytes = net->switches * sizeof(uint32_t);

    for (uint32_t i = 0; i < net->target_count; i++) {
        uint32_t sw = net->targets[i].sw;

        if (i > 0 && net->targets[i - 1].sw == sw) {
            memcpy(f->ways[i].next, f->ways[i - 1].next, bytes);
            memcpy(f->ways[i].length, f->ways[i - 1].length, bytes);
        } else if (!route_search(f->search, sw, &f->ways[i])) {
            return ibshift_fail(err, -ENOTSUP,
                                "the turns leave a switch without a way to switch '%s'",
                                route_net_name(net, sw));
        }
        count(f, &f->ways[i], true);
    }
    return 0;
}

static void share_out(struct filler *f)
{
    bool has_moved = true;

    for (int round = 0; round < ROUNDS && has_moved; round++) {
        has_moved = false;
        for (uint32_t i = 0; i < f->turns->net->target_count; i++) {
            has_moved |= rebalance(f, &f->ways[i]);
        }
    }
}

static void write_tables(const struct filler *f)
{
    const struct route_net *net = f->turns->net;
    struct ibshift_fabric *fabric = f->r->fabric;

    for (uint32_t i = 0; i < net->target_count; i++) {
        for (uint32_t s = 0; s < net->switches; s++) {
            uint32_t arc = f->ways[i].next[s];

            fabric->lft[(size_t)s * fabric->lft_stride + net->targets[i].lid] =
                arc == UINT32_MAX ? net->targets[i].port : net->arcs[arc].port;
        }
    }
}

static struct route_score score_of(const struct filler *f)
{
    struct route_score score = {0, 0};

    for (uint32_t a = 0; a < f->turns->net->arc_count; a++) {
        score.links += f->load[a];
        score.squares += f->load[a] * f->load[a];
    }
    return score;
}

int route_turns_fill(struct route *r, const struct route_turns *turns, struct route_score *score,
                     struct ibshift_error *err)
{
    struct filler f;
    int rc = open_filler(&f, r, turns, err);

    if (rc == 0) {
        rc = find_ways(&f, err);
    }
    if (rc == 0) {
        share_out(&f);
        write_tables(&f);
        *score = score_of(&f);
    }
    close_filler(&f);
    return rc;
}
