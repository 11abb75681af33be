/*
 * Flexible routing (section 4 of J. C. Sancho et al., "Routing in InfiniBand torus network
 * topologies"): cycles are broken turn by turn, so that the two directions of a cycle may be broken
 * at different switches. The paper leaves the rules to another one; here they are: all turns
 * between cables of the depth-first spanning tree are allowed, which connects everything without a
 * cycle; then, along a list, every turn that closes no cycle of channels. The list begins with the
 * turns of up*-down*. Then a forbidden turn is moved to its front, again and again, and stays there
 * when the tables become better: fewer squares of what links carry, so shorter or more even ways.
 */

#include "fabric/graph/random.h"
#include "route/turns.h"

enum { TRIES_MOST = 500, TRIES_WORK = 1 << 27 };

struct turn {
    uint32_t arc, next;
};

struct breaker {
    struct route_turns *t;
    struct turn *turns;  /* those that the tree does not have: the first come first */
    struct turn *others; /* the same in another order, that of before */
    uint8_t *is_allowed; /* [turn] */
    uint32_t count;
    uint32_t *seen, stamp; /* [arc] */
    uint32_t *stack;
};

static bool is_in_tree(const struct route_turns *t, uint32_t arc)
{
    const struct route_arc *a = &t->net.arcs[arc];

    return t->parent[a->from] == arc || t->parent[a->to] == a->back;
}

static bool is_tree(const struct route_turns *t, struct turn turn)
{
    return is_in_tree(t, turn.arc) && is_in_tree(t, turn.next);
}

/* Up is towards the root of a depth-first spanning tree, whose other cables all join a switch with one
 * above it: no way goes up again after it went down. */
static bool is_up_down(const struct route_turns *t, struct turn turn)
{
    return route_goes_up(t, turn.arc) || !route_goes_up(t, turn.next);
}

/* Allows the turns that are of a kind, and no other; these are listed if there is room for them. */
static uint32_t allow_all(struct route_turns *t,
                          bool (*is_kind)(const struct route_turns *t, struct turn turn),
                          struct turn *others)
{
    const struct route_net *net = &t->net;
    uint32_t count = 0;

    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t between = net->arcs[a].to;

        for (uint32_t next = net->first[between]; next < net->first[between + 1]; next++) {
            struct turn turn = {a, next};
            bool is_back = net->arcs[next].to == net->arcs[a].from;

            *route_turn(t, a, next) = !is_back && is_kind(t, turn);
            if (others != NULL && !is_back && !is_kind(t, turn)) {
                others[count++] = turn;
            }
        }
    }
    return count;
}

/* Whether allowed turns lead from one channel to another. */
static bool leads_to(struct breaker *b, uint32_t from, uint32_t to)
{
    const struct route_net *net = &b->t->net;
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

/* Of the list's turns those that close no cycle, one after another. */
static void allow(struct breaker *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        *route_turn(b->t, b->turns[i].arc, b->turns[i].next) = false;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        const struct turn *turn = &b->turns[i];

        b->is_allowed[i] = !leads_to(b, turn->next, turn->arc);
        *route_turn(b->t, turn->arc, turn->next) = b->is_allowed[i];
    }
}

static void swap_lists(struct breaker *b)
{
    struct turn *turns = b->turns;

    b->turns = b->others;
    b->others = turns;
}

/* One that is forbidden to the front, then those that are allowed, then the rest: few change. */
static void reorder(struct breaker *b, uint32_t front)
{
    uint32_t count = 0;

    b->others[count++] = b->turns[front];
    for (int pass = 1; pass >= 0; pass--) {
        for (uint32_t i = 0; i < b->count; i++) {
            if (i != front && b->is_allowed[i] == pass) {
                b->others[count++] = b->turns[i];
            }
        }
    }
    swap_lists(b);
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
    uint32_t tries = tries_for(&b->t->net), at;
    uint64_t least = UINT64_MAX, squares = UINT64_MAX, random = 1;
    int rc;

    allow(b);
    rc = route_turns_fill(r, b->t, &least, err);
    for (uint32_t i = 0; rc == 0 && i < tries && (at = draw(b, &random)) < b->count; i++) {
        reorder(b, at);
        allow(b);
        rc = route_turns_fill(r, b->t, &squares, err);
        if (squares < least) {
            least = squares;
        } else {
            swap_lists(b);
            allow(b);
        }
    }
    return rc == 0 ? route_turns_fill(r, b->t, &squares, err) : rc;
}

/* The list's beginning: the turns that up*-down* has. */
static void sort_list(struct breaker *b)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < b->count; i++) {
        if (is_up_down(b->t, b->turns[i])) {
            struct turn kept = b->turns[first];

            b->turns[first++] = b->turns[i];
            b->turns[i] = kept;
        }
    }
}

int route_flexible(struct route *r, struct ibshift_error *err)
{
    struct route_turns turns;
    struct breaker b = {.t = &turns};
    struct pool *pool = &turns.net.pool;
    int rc = route_turns_open(r->fabric, &turns, err);

    if (rc == 0) {
        b.turns = pool_new(pool, turns.count, sizeof(*b.turns));
        b.others = pool_new(pool, turns.count, sizeof(*b.others));
        b.is_allowed = pool_new(pool, turns.count, 1);
        b.seen = pool_new(pool, turns.net.arc_count, sizeof(*b.seen));
        b.stack = pool_new(pool, turns.net.arc_count, sizeof(*b.stack));
        b.count = allow_all(&turns, is_tree, b.turns);
        sort_list(&b);
        rc = climb(r, &b, err);
    }
    pool_free(pool);
    return rc;
}

int route_updn(struct route *r, struct ibshift_error *err)
{
    struct route_turns turns;
    uint64_t squares;
    int rc = route_turns_open(r->fabric, &turns, err);

    if (rc == 0) {
        allow_all(&turns, is_up_down, NULL);
        rc = route_turns_fill(r, &turns, &squares, err);
    }
    pool_free(&turns.net.pool);
    return rc;
}
