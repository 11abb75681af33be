#include "route/turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int route_turns_open(const struct route_net *net, struct route_turns *t, struct ibshift_error *err)
{
    uint64_t size = 0;

    *t = (struct route_turns){.net = net,
                              .from = calloc((size_t)net->arc_count + 1, sizeof(*t->from)),
                              .label = calloc((size_t)net->switches + 1, sizeof(*t->label)),
                              .parent = calloc((size_t)net->switches + 1, sizeof(*t->parent))};
    for (uint32_t a = 0; t->from != NULL && a < net->arc_count; a++) {
        uint32_t to = net->arcs[a].to;

        t->from[a] = size;
        size += net->first[to + 1] - net->first[to];
    }
    t->allowed = calloc(size + 1, 1);
    if (t->from == NULL || t->label == NULL || t->parent == NULL || t->allowed == NULL) {
        route_turns_close(t);
        return ibshift_fail(err, -ENOMEM, "no memory for the turns of %u switches", net->switches);
    }
    return route_turns_span(t, err);
}

void route_turns_close(struct route_turns *t)
{
    free(t->from);
    free(t->allowed);
    free(t->label);
    free(t->parent);
    memset(t, 0, sizeof(*t));
}

/* Sums of distances to all others, by which the tree is grown. */
static int measure(const struct route_net *net, uint64_t *far, struct ibshift_error *err)
{
    uint32_t *distance = malloc(2 * ((size_t)net->switches + 1) * sizeof(*distance));

    if (distance == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory");
    }
    for (uint32_t s = 0; s < net->switches; s++) {
        route_net_distances(net, s, distance, distance + net->switches + 1);
        far[s] = 0;
        for (uint32_t to = 0; to < net->switches; to++) {
            far[s] += distance[to];
        }
    }
    free(distance);
    return 0;
}

/* The arc to the switch that comes next below s, or UINT32_MAX. inside: cables into the tree. */
static uint32_t best_child(const struct route_turns *t, uint32_t s, const uint64_t *far,
                           const uint32_t *inside)
{
    const struct route_net *net = t->net;
    uint32_t best = UINT32_MAX;

    for (uint32_t a = net->first[s]; a < net->first[s + 1]; a++) {
        uint32_t to = net->arcs[a].to, chosen;

        if (t->label[to] != UINT32_MAX) {
            continue;
        }
        chosen = best == UINT32_MAX ? to : net->arcs[best].to;
        if (best == UINT32_MAX || inside[to] > inside[chosen] ||
            (inside[to] == inside[chosen] &&
             (far[to] > far[chosen] || (to < chosen && far[to] == far[chosen])))) {
            best = a;
        }
    }
    return best;
}

static void enter(struct route_turns *t, uint32_t s, uint32_t parent, uint32_t label,
                  uint32_t *inside)
{
    const struct route_net *net = t->net;

    t->label[s] = label;
    t->parent[s] = parent;
    for (uint32_t a = net->first[s]; a < net->first[s + 1]; a++) {
        inside[net->arcs[a].to]++;
    }
}

int route_turns_span(struct route_turns *t, struct ibshift_error *err)
{
    const struct route_net *net = t->net;
    uint64_t *far = malloc(((size_t)net->switches + 1) * sizeof(*far));
    uint32_t *inside = calloc((size_t)net->switches + 1, sizeof(*inside));
    uint32_t at = 0, labels = 0;
    int rc = far == NULL || inside == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                                           : measure(net, far, err);

    for (uint32_t s = 0; rc == 0 && s < net->switches; s++) {
        t->label[s] = UINT32_MAX;
        at = far[s] > far[at] ? s : at;
    }
    if (rc == 0 && net->switches > 0) {
        enter(t, at, UINT32_MAX, labels++, inside);
    }
    while (rc == 0 && labels < net->switches) {
        uint32_t arc = best_child(t, at, far, inside);

        if (arc != UINT32_MAX) {
            at = net->arcs[arc].to;
            enter(t, at, net->arcs[arc].back, labels++, inside);
        } else {
            at = net->arcs[t->parent[at]].to; /* connected: the root is left last */
        }
    }
    free(far);
    free(inside);
    return rc;
}
