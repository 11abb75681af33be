/*
 * Short ways of all switches to one, as a tree whose turns are all allowed.
 *
 * A switch joins the tree over a neighbour that is in it, when the turn there is allowed; nearest
 * first. What a switch chose binds those that want to come over it, so the first tree may leave
 * switches on detours, or out. Then the ways they would have are tried: the switches along such a
 * way are told to take it, and the tree is built again; what makes the whole shorter stays.
 */
#include <stdlib.h>
#include <string.h>

#include "route/turns.h"

enum { NEVER = 1 << 20, TRIES_MOST = 4096, TRIES_LEAST = 16, TRIES_WORK = 1 << 24 };

struct route_search {
    const struct route_turns *t;
    uint32_t *shortest; /* [arc]: links from its start to the target over it, turns allowed */
    uint32_t *queue;    /* [arc] */
    uint32_t *told;     /* [switch]: arc that it must take, or UINT32_MAX */
    uint32_t *kept, *best_next, *best_length;
};

struct route_search *route_search_new(const struct route_turns *t)
{
    struct route_search *s = calloc(1, sizeof(*s));
    size_t arcs = (size_t)t->net->arc_count + 1, switches = (size_t)t->net->switches + 1;

    if (s == NULL) {
        return NULL;
    }
    *s = (struct route_search){.t = t,
                               .shortest = malloc(arcs * sizeof(uint32_t)),
                               .queue = malloc(arcs * sizeof(uint32_t)),
                               .told = malloc(switches * sizeof(uint32_t)),
                               .kept = malloc(switches * sizeof(uint32_t)),
                               .best_next = malloc(switches * sizeof(uint32_t)),
                               .best_length = malloc(switches * sizeof(uint32_t))};
    if (s->shortest == NULL || s->queue == NULL || s->told == NULL || s->kept == NULL ||
        s->best_next == NULL || s->best_length == NULL) {
        route_search_free(s);
        return NULL;
    }
    return s;
}

void route_search_free(struct route_search *s)
{
    if (s != NULL) {
        free(s->shortest);
        free(s->queue);
        free(s->told);
        free(s->kept);
        free(s->best_next);
        free(s->best_length);
        free(s);
    }
}

/* From the target backwards, channel by channel, each switch free to choose by where one came
 * from: the bound that no table can beat. */
static void find_shortest(struct route_search *s, uint32_t target)
{
    const struct route_net *net = s->t->net;
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
static uint32_t followers(const struct route_search *s, uint32_t arc)
{
    const struct route_net *net = s->t->net;
    uint32_t sw = net->arcs[arc].from, count = 0;

    for (uint32_t out = net->first[sw]; out < net->first[sw + 1]; out++) {
        count += *route_turn(s->t, net->arcs[out].back, arc);
    }
    return count;
}

/* The arc by which a switch joins at this length, or UINT32_MAX. */
static uint32_t way_in(const struct route_search *s, const struct route_ways *ways, uint32_t sw,
                       uint32_t length)
{
    const struct route_net *net = s->t->net;
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
static uint64_t build(const struct route_search *s, uint32_t target, struct route_ways *ways)
{
    const struct route_net *net = s->t->net;
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
static void tell_way(struct route_search *s, uint32_t sw, uint32_t target)
{
    const struct route_net *net = s->t->net;
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

static uint32_t bound_of(const struct route_search *s, uint32_t sw)
{
    const struct route_net *net = s->t->net;
    uint32_t bound = UINT32_MAX;

    for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
        bound = s->shortest[a] < bound ? s->shortest[a] : bound;
    }
    return bound;
}

/* One round over the switches on detours; whether something became shorter. */
static bool improve(struct route_search *s, uint32_t target, struct route_ways *ways, uint64_t *sum,
                    unsigned *tries)
{
    const struct route_net *net = s->t->net;
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
static void tell_tree(struct route_search *s, uint32_t target, const struct route_ways *ways,
                      bool all)
{
    const struct route_turns *t = s->t;
    uint32_t sw = target;

    while (t->parent[sw] != UINT32_MAX) { /* from the root down to the target */
        const struct route_arc *up = &t->net->arcs[t->parent[sw]];

        s->told[up->to] = up->back;
        sw = up->to;
    }
    for (sw = 0; sw < t->net->switches; sw++) {
        uint32_t at = sw;

        while ((all || ways->length[sw] == UINT32_MAX) && at != target &&
               s->told[at] == UINT32_MAX) {
            s->told[at] = t->parent[at];
            at = t->net->arcs[t->parent[at]].to;
        }
    }
}

bool route_search(struct route_search *s, uint32_t target, struct route_ways *ways)
{
    size_t bytes = s->t->net->switches * sizeof(uint32_t);
    uint64_t switches = s->t->net->switches, work = TRIES_WORK / (switches * switches);
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
