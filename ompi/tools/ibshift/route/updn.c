/*
 * up and down: no way goes up again after it went down. Up is towards the root of a depth-first
 * spanning tree, whose other cables all join a switch with one above it.
 */
#include "route/turns.h"

static void allow(const struct route_turns *t)
{
    const struct route_net *net = t->net;

    for (uint32_t a = 0; a < net->arc_count; a++) {
        uint32_t between = net->arcs[a].to;

        for (uint32_t next = net->first[between]; next < net->first[between + 1]; next++) {
            *route_turn(t, a, next) = net->arcs[next].to != net->arcs[a].from &&
                                      (route_goes_up(t, a) || !route_goes_up(t, next));
        }
    }
}

int route_updn(struct route *r, struct ibshift_error *err)
{
    struct route_turns turns;
    struct route_score score;
    struct route_net net;
    int rc = route_net_open(r->fabric, &net, err);

    if (rc != 0) {
        return rc;
    }
    rc = route_turns_open(&net, &turns, err);
    if (rc == 0) {
        allow(&turns);
        rc = route_turns_fill(r, &turns, &score, err);
        route_turns_close(&turns);
    }
    route_net_close(&net);
    return rc;
}
