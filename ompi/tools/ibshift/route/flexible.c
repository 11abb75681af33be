/*
 * Flexible routing (section 4 of J. C. Sancho et al., "Routing in InfiniBand torus network
 * topologies"): cycles are broken turn by turn, so that the two directions of a cycle may be broken
 * at different switches. The paper leaves the rules to another one; here they are: all turns
 * between cables of the depth-first spanning tree are allowed, which connects everything without a
 * cycle; then, along a list, every turn that closes no cycle of channels. The list begins with the
 * turns of up*-down*. Then a forbidden turn is moved to its front, again and again, and stays there
 * when the tables become better: fewer squares of what links carry, so shorter or more even ways.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"
#include "route/turns.h"

enum { TRIES_MOST = 500, TRIES_WORK = 1 << 27 };

struct turn {
    uint32_t arc, next;
};

struct breaker {
    const struct route_turns *t;
    struct turn *turns; /* those that the tree does not have: the first come first */
    struct turn *kept, *best;
    uint8_t *is_allowed; /* [turn] */
    uint32_t count;
    uint32_t *seen, stamp; /* [arc] */
    uint32_t *stack;
};

static bool is_tree(const struct route_turns *t, uint32_t arc)
{
    const struct route_arc *a = &t->net->arcs[arc];

    return t->parent[a->from] == arc || t->parent[a->to] == a->back;
}

/* Whether allowed turns lead from one channel to another. */
static bool leads_to(struct breaker *b, uint32_t from, uint32_t to)
{
    const struct route_net *net = b->t->net;
    uint32_t depth = 0;

    b->stamp++;
    b->stack[depth++] = from;
    b->seen[from] = b->stamp;
    while (depth > 0) {
        uint32_t arc = b->stack[--depth], between = net->arcs[arc].to;

        if (arc == to) {
            return true;
        }
        for (uint32_t next = net->first[between]; next < net->first[between + 1]; next++) {
            if (*route_turn(b->t, arc, next) && b->seen[next] != b->stamp) {
                b->seen[next] = b->stamp;
                b->stack[depth++] = next;
            }
        }
    }
    return false;
}

static int open_breaker(struct breaker *b, const struct route_turns *t, struct ibshift_error *err)
{
    const struct route_net *net = t->net;
    size_t turns = 1;

    for (uint32_t a = 0; a < net->arc_count; a++) {
        turns += net->first[net->arcs[a].to + 1] - net->first[net->arcs[a].to];
    }
    *b = (struct breaker){.t = t,
                          .turns = malloc(turns * sizeof(*b->turns)),
                          .kept = malloc(turns * sizeof(*b->turns)),
                          .best = malloc(turns * sizeof(*b->turns)),
                          .is_allowed = calloc(turns, 1),
                          .seen = calloc((size_t)net->arc_count + 1, sizeof(*b->seen)),
                          .stack = malloc(((size_t)net->arc_count + 1) * sizeof(*b->stack))};
    return b->turns != NULL && b->kept != NULL && b->best != NULL && b->is_allowed != NULL &&
                   b->seen != NULL && b->stack != NULL
               ? 0
               : ibshift_fail(err, -ENOMEM, "no memory for %zu turns", turns);
}

static void close_breaker(struct breaker *b)
{
    free(b->turns);
    free(b->kept);
    free(b->best);
    free(b->is_allowed);
    free(b->seen);
    free(b->stack);
}

/* The tree's turns are allowed; the others are in the list. */
static void begin(struct breaker *b)
{
    const struct route_net *net = b->t->net;

    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t between = net->arcs[a].to;

        for (uint32_t next = net->first[between]; next < net->first[between + 1]; next++) {
            *route_turn(b->t, a, next) =
                net->arcs[next].to != net->arcs[a].from && is_tree(b->t, a) && is_tree(b->t, next);
        }
    }
}

static void list_turns(struct breaker *b)
{
    const struct route_net *net = b->t->net;

    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t between = net->arcs[a].to;

        for (uint32_t next = net->first[between]; next < net->first[between + 1]; next++) {
            if (net->arcs[next].to != net->arcs[a].from &&
                !(is_tree(b->t, a) && is_tree(b->t, next))) {
                b->turns[b->count++] = (struct turn){a, next};
            }
        }
    }
}

static void allow(struct breaker *b)
{
    begin(b);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct turn *turn = &b->turns[i];

        b->is_allowed[i] = !leads_to(b, turn->next, turn->arc);
        *route_turn(b->t, turn->arc, turn->next) = b->is_allowed[i];
    }
}

/* Turns that up*-down* has come first. */
static bool comes_first(const struct route_turns *t, const struct turn *turn)
{
    return route_goes_up(t, turn->arc) || !route_goes_up(t, turn->next);
}

/* One that is forbidden to the front, then those that are allowed, then the rest: few change. */
static void reorder(struct breaker *b, uint32_t front)
{
    uint32_t count = 0;

    b->kept[count++] = b->turns[front];
    for (int pass = 1; pass >= 0; pass--) {
        for (uint32_t i = 0; i < b->count; i++) {
            if (i != front && b->is_allowed[i] == pass) {
                b->kept[count++] = b->turns[i];
            }
        }
    }
    memcpy(b->turns, b->kept, b->count * sizeof(*b->turns));
}

/* The place of a random turn that is forbidden, or count: none is. */
static uint32_t draw(const struct breaker *b, uint64_t *random)
{
    uint32_t start = b->count > 0 ? ibshift_random_below(random, b->count) : 0;

    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t at = (start + i) % b->count;

        if (!b->is_allowed[at]) {
            return at;
        }
    }
    return b->count;
}

static uint32_t tries_for(const struct route_net *net)
{
    uint64_t work = (uint64_t)net->switches * net->switches * net->target_count;
    uint64_t tries = TRIES_WORK / (work + 1);

    return tries > TRIES_MOST ? TRIES_MOST : (uint32_t)tries;
}

static int climb(struct route *r, struct breaker *b, struct ibshift_error *err)
{
    size_t bytes = b->count * sizeof(*b->turns);
    uint32_t tries = tries_for(b->t->net), at;
    struct route_score least, score;
    uint64_t random = 1;
    int rc;

    allow(b);
    rc = route_turns_fill(r, b->t, &least, err);
    for (uint32_t i = 0; rc == 0 && i < tries && (at = draw(b, &random)) < b->count; i++) {
        memcpy(b->best, b->turns, bytes);
        reorder(b, at);
        allow(b);
        rc = route_turns_fill(r, b->t, &score, err);
        if (score.squares < least.squares) {
            least = score;
        } else {
            memcpy(b->turns, b->best, bytes);
            allow(b);
        }
    }
    return rc == 0 ? route_turns_fill(r, b->t, &score, err) : rc;
}

static int find_best(struct route *r, struct breaker *b, struct ibshift_error *err)
{
    uint32_t first = 0;

    list_turns(b);
    for (uint32_t i = 0; i < b->count; i++) {
        if (comes_first(b->t, &b->turns[i])) {
            struct turn kept = b->turns[first];

            b->turns[first++] = b->turns[i];
            b->turns[i] = kept;
        }
    }
    return climb(r, b, err);
}

static int build_flexible(struct route *r, struct route_turns *turns, struct ibshift_error *err)
{
    struct breaker b = {.t = NULL};
    int rc = open_breaker(&b, turns, err);

    if (rc == 0) {
        rc = find_best(r, &b, err);
    }
    close_breaker(&b);
    return rc;
}

/*
 * up and down: no way goes up again after it went down. Up is towards the root of a depth-first
 * spanning tree, whose other cables all join a switch with one above it.
 */
static int build_updn(struct route *r, struct route_turns *t, struct ibshift_error *err)
{
    const struct route_net *net = t->net;
    struct route_score score;

    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t between = net->arcs[a].to;

        for (uint32_t next = net->first[between]; next < net->first[between + 1]; next++) {
            *route_turn(t, a, next) = net->arcs[next].to != net->arcs[a].from &&
                                      (route_goes_up(t, a) || !route_goes_up(t, next));
        }
    }
    return route_turns_fill(r, t, &score, err);
}

static int with_turns(struct route *r, struct ibshift_error *err,
                      int (*build)(struct route *, struct route_turns *, struct ibshift_error *))
{
    struct route_turns turns;
    struct route_net net;
    int rc = route_net_open(r->fabric, &net, err);

    if (rc != 0) {
        return rc;
    }
    rc = route_turns_open(&net, &turns, err);
    if (rc == 0) {
        rc = build(r, &turns, err);
        route_turns_close(&turns);
    }
    route_net_close(&net);
    return rc;
}

int route_flexible(struct route *r, struct ibshift_error *err)
{
    return with_turns(r, err, build_flexible);
}

int route_updn(struct route *r, struct ibshift_error *err)
{
    return with_turns(r, err, build_updn);
}
