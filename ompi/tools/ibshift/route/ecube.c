/*
 * e-cube routing of tori: the highest dimension first, in each the shorter way around. Deadlock
 * freedom after Dally and Seitz, in InfiniBand's terms after section 2 of J. C. Sancho et al.,
 * "Routing in InfiniBand torus network topologies": bit i of the SL says that the packet goes
 * through the wraparound cable of dimension i, so 2^n SLs, and 2 VLs.
 *
 * Within a dimension VL 1 belongs to packets whose destination has the larger digit. A switch
 * knows its own digit c, the port and the SL. Without the bit, a packet that goes up has a larger
 * destination. With it, it goes up to k - 1, through the wrap, and on from 0; minimal ways are at
 * most k / 2 long, so it starts at c >= k / 2 and ends below: c tells on which side of the wrap
 * it is.
 */
#include "route/turns.h"

#include <errno.h>

#include "fabric/shape/shape.h"

enum { UP, DOWN, SIDES };

struct torus {
    struct route *r;
    struct route_net net;
    struct ibshift_shape shape;
    uint8_t *dim, *side; /* [arc] */
};

static const uint16_t *place_of(const struct torus *t, uint32_t sw)
{
    return t->shape.digits + (size_t)sw * (IBSHIFT_LEVELS_MAX + 1);
}

/* How many other switches one is cabled to; at most 255. */
static unsigned neighbours(const struct route_net *net, uint32_t sw)
{
    unsigned count = 0;

    for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
        bool is_new = true;

        for (uint32_t b = net->first[sw]; b < a; b++) {
            is_new = is_new && net->arcs[b].to != net->arcs[a].to;
        }
        count += is_new;
    }
    return count < 255 ? count : 255;
}

/* The first switch that has not as many neighbours as most have. */
static int refuse(const struct route_net *net, struct ibshift_error *err)
{
    uint32_t with[256] = {0};
    unsigned usual = 0;

    for (uint32_t s = 0; s < net->switches; s++) {
        with[neighbours(net, s)]++;
    }
    for (unsigned n = 0; n < 256; n++) {
        usual = with[n] > with[usual] ? n : usual;
    }
    for (uint32_t s = 0; s < net->switches; s++) {
        unsigned n = neighbours(net, s);

        if (n != usual) {
            return ibshift_fail(err, -ENOTSUP,
                                "not a torus: switch '%s' is cabled to %u switches, %u of %u are "
                                "to %u; engines updn and flexible route any fabric",
                                route_net_name(net, s), n, with[usual], net->switches, usual);
        }
    }
    return ibshift_fail(err, -ENOTSUP,
                        "not a torus: the ports of switch '%s' lead along no axes that close to "
                        "rings and cover all %u switches; engines updn and flexible route any "
                        "fabric",
                        route_net_name(net, 0), net->switches);
}

static unsigned size_of(const struct torus *t, unsigned dim)
{
    return t->shape.dim[dim];
}

/* Each cable's dimension and side; of two switches in a row up is from 0 to 1. */
static void sort_arcs(struct torus *t)
{
    for (uint32_t a = 0; a < t->net.arc_count; a++) {
        const uint16_t *x = place_of(t, t->net.arcs[a].from), *y = place_of(t, t->net.arcs[a].to);
        unsigned k = 0;

        while (k + 1 < t->shape.dims && x[k] == y[k]) {
            k++;
        }
        t->dim[a] = (uint8_t)k;
        t->side[a] = size_of(t, k) == 2 ? (y[k] > x[k] ? UP : DOWN)
                                        : (y[k] == (x[k] + 1) % size_of(t, k) ? UP : DOWN);
    }
}

/*
 * The way around when both are as long. Tables know the destination only, so half of the ties go up
 * by the digits that are still to come, and in the lowest dimension by the place on the ring.
 */
static unsigned side_of_tie(const uint16_t *here, const uint16_t *there, unsigned dim,
                            uint32_t brother)
{
    unsigned sum = here[dim] + brother;

    for (unsigned k = 0; k < dim; k++) {
        sum += there[k];
    }
    return sum % 2 == 0 ? UP : DOWN;
}

/* Dimension and side of the next step; false: it is there. */
static bool next_step(const struct torus *t, uint32_t sw, const struct route_target *target,
                      unsigned *dim, unsigned *side)
{
    const uint16_t *here = place_of(t, sw), *there = place_of(t, target->sw);

    for (unsigned k = t->shape.dims; k-- > 0;) {
        unsigned size = size_of(t, k), up;

        if (here[k] == there[k]) {
            continue;
        }
        up = (there[k] + size - here[k]) % size;
        *dim = k;
        if (size == 2) {
            *side = there[k] > here[k] ? UP : DOWN;
        } else if (2 * up == size) {
            *side = side_of_tie(here, there, k, target->brother);
        } else {
            *side = 2 * up < size ? UP : DOWN;
        }
        return true;
    }
    return false;
}

/* One of the cables of that step, by turns. */
static const struct route_arc *cable(const struct torus *t, uint32_t sw, unsigned dim,
                                     unsigned side, uint32_t turn)
{
    const struct route_net *net = &t->net;
    uint32_t count = 0;

    for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
        count += t->dim[a] == dim && t->side[a] == side;
    }
    turn = count > 0 ? turn % count : 0;
    for (uint32_t a = net->first[sw]; a < net->first[sw + 1]; a++) {
        if (t->dim[a] == dim && t->side[a] == side && turn-- == 0) {
            return &net->arcs[a];
        }
    }
    return NULL;
}

/* Bits of the dimensions whose wraparound cable the route takes. */
static uint8_t wraps(const struct torus *t, uint32_t sw, const struct route_target *target)
{
    unsigned dim, side;
    uint8_t sl = 0;

    while (next_step(t, sw, target, &dim, &side)) {
        const struct route_arc *arc = cable(t, sw, dim, side, target->brother);
        unsigned from = place_of(t, sw)[dim], to = place_of(t, arc->to)[dim];

        if (side == UP ? to < from : to > from) {
            sl |= (uint8_t)(1u << dim);
        }
        sw = arc->to;
    }
    return sl;
}

static void fill(void *context, uint32_t first, uint32_t end)
{
    struct torus *t = context;
    struct ibshift_fabric *f = t->r->fabric;

    for (uint32_t i = first; i < end; i++) {
        const struct route_target *target = &t->net.targets[i];

        for (uint32_t s = 0; s < t->net.switches; s++) {
            size_t at = (size_t)s * f->lft_stride + target->lid;
            unsigned dim, side;

            f->lft[at] = next_step(t, s, target, &dim, &side)
                             ? cable(t, s, dim, side, target->brother)->port
                             : target->port;
            t->r->sl[at] = wraps(t, s, target);
        }
    }
}

static uint8_t lane(const struct torus *t, uint32_t arc, unsigned sl)
{
    unsigned dim = t->dim[arc], here = place_of(t, t->net.arcs[arc].from)[dim];
    bool is_up = t->side[arc] == UP, is_wrapped = (sl >> dim & 1) != 0;
    bool is_high = 2 * here >= size_of(t, dim);

    /* Up and wrapped: high comes before the wrap, so the destination is smaller. Down: low does. */
    return is_wrapped ? !is_high : is_up;
}

static void fill_lanes(struct torus *t)
{
    for (uint32_t a = 0; a < t->net.arc_count; a++) {
        const struct route_arc *arc = &t->net.arcs[a];
        unsigned ports = t->r->fabric->nodes[t->r->fabric->switches[arc->from]].port_count;

        for (unsigned in = 0; in <= ports; in++) {
            for (unsigned sl = 0; sl < 1u << t->shape.dims; sl++) {
                t->r->lanes
                    .vl[fabric_sl2vl_at(t->r->fabric, &t->r->lanes, arc->from, in, arc->port, sl)] =
                    lane(t, a, sl);
            }
        }
    }
}

static int route_torus(struct torus *t, struct ibshift_error *err)
{
    int rc = ibshift_shape_find(t->net.f, &t->shape, err);

    if (rc != 0) {
        return rc;
    }
    if (t->shape.kind != IBSHIFT_SHAPE_TORUS) {
        return refuse(&t->net, err);
    }
    if (1u << t->shape.dims > FABRIC_SLS) {
        return ibshift_fail(err, -ENOTSUP, "a torus of %u dimensions needs %u SLs, there are %u",
                            t->shape.dims, 1u << t->shape.dims, FABRIC_SLS);
    }
    t->dim = pool_new(&t->net.pool, t->net.arc_count, 1);
    t->side = pool_new(&t->net.pool, t->net.arc_count, 1);
    rc = route_lanes_new(t->r, 2, err);
    if (rc == 0) {
        sort_arcs(t);
        fill_lanes(t);
        route_parallel(t->r->threads, t->net.target_count, fill, t);
    }
    return rc;
}

int route_ecube(struct route *r, struct ibshift_error *err)
{
    struct torus t = {.r = r};
    int rc = route_net_open(r->fabric, &t.net, err);

    if (rc == 0) {
        rc = route_torus(&t, err);
    }
    ibshift_shape_free(&t.shape);
    pool_free(&t.net.pool);
    return rc;
}
