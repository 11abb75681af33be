#include "fabric/shape/order.h"
#include "fabric/paths/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A host on its way into the order. */
struct member {
    uint32_t host;
    uint32_t part; /* component below the one being ordered */
    uint32_t turn; /* switch where routes from other parts turn down */
    uint32_t out;  /* link it is left through */
    int64_t age;   /* place of the host that used the turning switch before; smaller goes first */
    uint32_t place;
};

struct orderer {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *shape;
    bool by_tables;         /* or by the switches alone */
    struct member *members; /* in the order found so far */
    uint32_t count;
    uint32_t *latest;   /* [switch]: last place that it turned for, + 1 */
    uint32_t *previous; /* [place]: the one before with the same turn, + 1 */
};

uint32_t ibshift_order_component(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                                 uint32_t host, unsigned l)
{
    uint32_t leaf = ibshift_port_neighbour(f, f->hosts[host]);
    uint32_t sw = leaf == IBSHIFT_NO_NODE ? IBSHIFT_NO_SWITCH : f->nodes[leaf].switch_index;

    return l == 0 || sw == IBSHIFT_NO_SWITCH ? sw : shape->down[l][sw];
}

uint32_t ibshift_order_turn(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                            uint32_t from, uint32_t to, uint32_t *out)
{
    const uint8_t *level = shape->levels != 0 ? shape->node_level : NULL;
    uint32_t links[IBSHIFT_ROUTE_MAX], turn = IBSHIFT_NO_SWITCH;
    unsigned highest = 0;
    int walked, count = ibshift_route_walk(f, from, ibshift_host_lid(f, to), links,
                                           IBSHIFT_ROUTE_MAX, &walked);

    *out = 0;
    for (int i = 1; i < count; i++) {
        uint32_t node = f->ports[links[i]].node;
        unsigned height = level != NULL ? level[node] : i == 2;

        if (height > highest) {
            highest = height;
            turn = f->nodes[node].switch_index;
            *out = links[i];
        }
    }
    return turn;
}

static int by_part(const void *x, const void *y)
{
    const struct member *a = x, *b = y;

    if (a->part != b->part) {
        return a->part < b->part ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

static int by_turn(const void *x, const void *y)
{
    const struct member *a = x, *b = y;

    if (a->turn != b->turn) {
        return a->turn < b->turn ? -1 : 1;
    }
    if (a->out != b->out) {
        return a->out < b->out ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

static int by_age(const void *x, const void *y)
{
    const struct member *a = x, *b = y;

    if (a->age != b->age) {
        return a->age < b->age ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

/* members[0 .. n) turn at the same switch: they take the ages of its last n uses, the oldest first.
 */
static void age_run(const struct orderer *o, struct member *members, uint32_t n)
{
    uint32_t use = members[0].turn == IBSHIFT_NO_SWITCH ? 0 : o->latest[members[0].turn];

    for (uint32_t i = n; i-- > 0;) {
        members[i].age = use == 0 ? -1 : (int64_t)use - 1;
        use = use == 0 ? 0 : o->previous[use - 1];
    }
}

/* Gives the part's members, standing at places from start, their order; the part before used the
 * switches last. */
static void order_part(struct orderer *o, struct member *part, uint32_t n, uint32_t start,
                       bool first)
{
    if (!first) {
        qsort(part, n, sizeof(*part), by_turn);
        for (uint32_t i = 0, run; i < n; i += run) {
            for (run = 1; i + run < n && part[i + run].turn == part[i].turn; run++) {
            }
            age_run(o, part + i, run);
        }
        qsort(part, n, sizeof(*part), by_age);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t turn = part[i].turn;

        if (turn != IBSHIFT_NO_SWITCH) {
            o->previous[start + i] = o->latest[turn];
            o->latest[turn] = start + i + 1;
        }
    }
}

/* members[0 .. n): one component of level l, its hosts in order within each component of level l
 * - 1. */
static void order_component(struct orderer *o, struct member *members, uint32_t n, unsigned l)
{
    uint32_t start, end;

    for (uint32_t i = 0; i < n; i++) {
        members[i].part = ibshift_order_component(o->f, o->shape, members[i].host, l - 1);
        members[i].place = i;
    }
    qsort(members, n, sizeof(*members), by_part);
    if (members[0].part == members[n - 1].part) {
        return;
    }
    for (uint32_t i = 0; o->by_tables && i < n; i++) {
        uint32_t other = members[i].part != members[0].part ? 0 : n - 1;

        members[i].turn = ibshift_order_turn(o->f, o->shape, members[other].host, members[i].host,
                                             &members[i].out);
    }
    memset(o->latest, 0, o->f->switch_count * sizeof(*o->latest));
    for (start = 0; start < n; start = end) {
        for (end = start; end < n && members[end].part == members[start].part; end++) {
        }
        order_part(o, members + start, end - start, start, start == 0 || !o->by_tables);
    }
}

/* Sorts all hosts by their component of level l (top: all are one), then orders each component. */
static void order_level(struct orderer *o, unsigned l, bool top)
{
    uint32_t start, end;

    for (uint32_t i = 0; i < o->count; i++) {
        o->members[i].part =
            top ? 0 : ibshift_order_component(o->f, o->shape, o->members[i].host, l);
        o->members[i].place = i;
    }
    qsort(o->members, o->count, sizeof(*o->members), by_part);
    for (start = 0; start < o->count; start = end) {
        uint32_t part = o->members[start].part;

        for (end = start; end < o->count && (end == start || o->members[end].part == part); end++) {
        }
        order_component(o, o->members + start, end - start, l);
    }
}

/* Row by row in a torus; else switch by switch. */
static void start_order(struct orderer *o)
{
    const struct ibshift_shape *t = o->shape;

    for (uint32_t h = 0; h < o->f->host_count; h++) {
        uint32_t port = o->f->ports[o->f->hosts[h]].peer,
                 part = ibshift_order_component(o->f, o->shape, h, 0);

        if (t->kind == IBSHIFT_SHAPE_TORUS && part != IBSHIFT_NO_SWITCH) {
            const uint16_t *digits = t->digits + (size_t)part * (IBSHIFT_LEVELS_MAX + 1);

            part = 0;
            for (unsigned k = t->dims; k-- > 0;) {
                part = part * t->dim[k] + digits[k];
            }
        }
        o->members[h] = (struct member){.host = h, .part = part, .place = port};
    }
    o->count = o->f->host_count;
    qsort(o->members, o->count, sizeof(*o->members), by_part);
}

static void order_all(struct orderer *o)
{
    start_order(o);
    if (o->count < 2 || o->shape->kind == IBSHIFT_SHAPE_TORUS) {
        return;
    }
    if (o->shape->levels == 0 || o->shape->down[1] == NULL) {
        order_level(o, 1, true);
        return;
    }
    for (unsigned l = 2; l <= o->shape->levels; l++) {
        order_level(o, l, l == o->shape->levels);
    }
}

int ibshift_order_hosts(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                        bool by_tables, uint32_t **order, struct ibshift_error *err)
{
    struct ibshift_shape flat = {.kind = shape->kind};
    bool has_levels = shape->levels != 0 && shape->down[1] != NULL;
    struct orderer o = {.f = f,
                        .by_tables = by_tables && f->lft != NULL,
                        .shape = has_levels || shape->kind == IBSHIFT_SHAPE_TORUS ? shape : &flat,
                        .members = calloc((size_t)f->host_count + 1, sizeof(*o.members)),
                        .latest = calloc((size_t)f->switch_count + 1, sizeof(*o.latest)),
                        .previous = calloc((size_t)f->host_count + 1, sizeof(*o.previous))};
    uint32_t *hosts = malloc(((size_t)f->host_count + 1) * sizeof(*hosts));
    bool ok = o.members && o.latest && o.previous && hosts;

    if (ok) {
        order_all(&o);
        for (uint32_t i = 0; i < o.count; i++) {
            hosts[i] = o.members[i].host;
        }
        *order = hosts;
    } else {
        free(hosts);
    }
    free(o.members);
    free(o.latest);
    free(o.previous);
    return ok ? 0 : ibshift_fail(err, -ENOMEM, "no memory to order %u hosts", f->host_count);
}
