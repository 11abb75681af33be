#include "choose/fewer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "choose/size.h"

/* Its place is that of the nearest before it, unless that is the root's. */
static void put(const struct ibshift_nodes *nodes, uint32_t *taken, uint32_t count, uint32_t node,
                uint32_t roots)
{
    uint32_t place = (uint32_t)((uint64_t)node * (count - 1) / (nodes->nodes - 1));

    while (place + 1 < count && taken[place + 1] <= node) {
        place++;
    }
    if (taken[place] != roots) {
        taken[place] = node;
    }
}

/* Leaves that one out; returns how many are left. */
static uint32_t leave_out(const struct ibshift_plan *plan, uint32_t *taken, uint32_t count,
                          uint32_t roots)
{
    double mean = (double)plan->ranks / plan->nodes->nodes, least = INFINITY;
    uint32_t out = 0;

    for (uint32_t i = 0; i < count; i++) {
        double error = fabs(ibshift_nodes_size(plan, taken[i]) - mean);

        if (taken[i] != roots && error <= least) {
            least = error;
            out = i;
        }
    }
    for (count--; out < count; out++) {
        taken[out] = taken[out + 1];
    }
    return count;
}

static int in_order(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The ranks of these nodes, ascending; returns how many. */
static uint32_t list_ranks(const struct ibshift_plan *plan, const uint32_t *taken, uint32_t count,
                           uint32_t *ranks)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t place = 0; place < ibshift_nodes_size(plan, taken[i]); place++) {
            ranks[n++] = ibshift_nodes_rank(plan, taken[i], place);
        }
    }
    if (!plan->nodes->is_ordered) {
        qsort(ranks, n, sizeof(*ranks), in_order);
    }
    return n;
}

/* The number that the whole job has, as one of the few that have come; it is one more if it has not. */
static uint32_t number(uint32_t whole, uint32_t *come, uint32_t *count)
{
    uint32_t i = *count;

    while (i > 0 && come[i - 1] != whole) {
        i--;
    }
    if (i > 0) {
        return i - 1;
    }
    come[(*count)++] = whole;
    return *count - 1;
}

/* So many hosts, two or more, at equal distances, with the root's and the fullest; their ranks are numbered in their order.
 * lacks_one: of those all but the one, not the root's, that has most nearly as many ranks as hosts have in the mean. 0 or -ENOMEM. */
static int take_hosts(const struct ibshift_price_request *request, uint32_t count, bool lacks_one,
                      struct ibshift_fewer *fewer)
{
    const struct ibshift_plan *plan = request->plan;
    const struct ibshift_crowd *crowd = request->crowd;
    uint32_t most = count * plan->nodes->most, roots = ibshift_nodes_of(plan, plan->root);
    uint32_t *taken = malloc((2 * (size_t)count + 4 * (size_t)most) * sizeof(*taken));
    uint32_t *processors, *ranks, *host_of, *port_of, *come, hosts = 0, ports = 0, root = 0;

    if (taken == NULL) {
        return -ENOMEM;
    }
    processors = taken + count;
    ranks = processors + count;
    host_of = ranks + most;
    port_of = host_of + most;
    come = port_of + most;
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = (uint32_t)((uint64_t)i * (plan->nodes->nodes - 1) / (count - 1));
    }
    put(plan->nodes, taken, count, roots, roots);
    put(plan->nodes, taken, count, ibshift_nodes_fullest(plan), roots);
    if (lacks_one) {
        count = leave_out(plan, taken, count, roots);
    }
    fewer->plan.ranks = list_ranks(plan, taken, count, ranks);
    for (uint32_t i = 0; i < fewer->plan.ranks; i++) {
        host_of[i] = number(crowd->host_of[ranks[i]], come, &hosts);
        processors[host_of[i]] = crowd->processors[crowd->host_of[ranks[i]]];
        root = ranks[i] == plan->root ? i : root;
    }
    for (uint32_t i = 0; i < fewer->plan.ranks; i++) {
        port_of[i] = number(crowd->port_of[ranks[i]], come, &ports);
    }
    if (ibshift_nodes_make(host_of, fewer->plan.ranks, &fewer->nodes) != 0) {
        free(taken);
        return -ENOMEM;
    }
    fewer->memory = taken;
    fewer->crowd = (struct ibshift_crowd){
        hosts, ports, host_of, port_of, processors, crowd->is_crowded, crowd->most};
    fewer->request.crowd = &fewer->crowd;
    fewer->plan.nodes = &fewer->nodes;
    fewer->plan.root = root;
    return 0;
}

uint64_t ibshift_fewer_filled(const struct ibshift_price_request *request, uint64_t bytes)
{
    uint64_t pieces = ibshift_alg_pieces(request->alg, request->plan);
    uint64_t each = bytes / pieces + (bytes % pieces != 0);

    return !ibshift_collective_has_vector(request->alg->collective) || bytes == 0 ? bytes
           : each > UINT64_MAX / pieces                                           ? bytes
                                                                                  : each * pieces;
}

void ibshift_fewer_free(struct ibshift_fewer *fewer)
{
    if (fewer->memory != NULL) {
        ibshift_nodes_free(&fewer->nodes);
        free(fewer->memory);
    }
}

/* The plan has its ranks, and who shares what is known: with as much for each piece of a vector. 0, or -ENOTSUP. */
static int finish(const struct ibshift_price_request *request, struct ibshift_fewer *fewer)
{
    char why[128];
    double share;

    if (ibshift_alg_check(request->alg, &fewer->plan, why, sizeof(why)) != 0) {
        return -ENOTSUP;
    }
    share = (double)ibshift_alg_pieces(request->alg, &fewer->plan) /
            ibshift_alg_pieces(request->alg, request->plan);
    fewer->request.bytes = (uint64_t)ceil(share * (double)request->bytes);
    fewer->request.bytes = ibshift_fewer_filled(&fewer->request, fewer->request.bytes);
    return 0;
}

static void begin(const struct ibshift_price_request *request, uint32_t segments,
                  struct ibshift_fewer *fewer)
{
    fewer->memory = NULL;
    fewer->plan = *request->plan;
    fewer->plan.segments = segments;
    fewer->plan.order = NULL;
    fewer->request = *request;
    fewer->request.plan = &fewer->plan;
    fewer->request.peers = request->peers > 0 ? request->peers : request->plan->ranks - 1;
    fewer->request.limit = 0;
}

int ibshift_fewer_units(const struct ibshift_price_request *request, uint32_t units, bool lacks_one,
                        uint32_t segments, struct ibshift_fewer *fewer)
{
    int rc = 0;

    begin(request, segments, fewer);
    if (ibshift_fewer_has_hosts(request)) {
        rc = take_hosts(request, units, lacks_one, fewer);
    } else {
        fewer->plan.ranks = units - lacks_one;
        fewer->plan.root = request->plan->root % fewer->plan.ranks;
    }
    rc = rc == 0 ? finish(request, fewer) : rc;
    if (rc != 0) {
        ibshift_fewer_free(fewer);
    }
    return rc;
}

int ibshift_fewer_ranks(const struct ibshift_price_request *request, uint32_t ranks,
                        struct ibshift_fewer *fewer)
{
    begin(request, request->plan->segments, fewer);
    fewer->plan.ranks = ranks;
    fewer->plan.root = request->plan->root % ranks;
    return finish(request, fewer);
}
