#include "choose/hosts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

int ibshift_hosts_take(const struct ibshift_price_request *request, uint32_t count, bool lacks_one,
                       struct ibshift_hosts *hosts)
{
    const struct ibshift_plan *plan = request->plan;
    const struct ibshift_crowd *crowd = request->crowd;
    uint32_t most = count * plan->nodes->most, roots = ibshift_nodes_of(plan, plan->root);
    uint32_t *taken = malloc((2 * (size_t)count + 4 * (size_t)most) * sizeof(*taken));
    uint32_t *processors, *ranks, *host_of, *port_of, *come;
    int rc;

    *hosts = (struct ibshift_hosts){.memory = taken};
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
    hosts->ranks = list_ranks(plan, taken, count, ranks);
    for (uint32_t i = 0; i < hosts->ranks; i++) {
        host_of[i] = number(crowd->host_of[ranks[i]], come, &hosts->crowd.hosts);
        processors[host_of[i]] = crowd->processors[crowd->host_of[ranks[i]]];
        hosts->root = ranks[i] == plan->root ? i : hosts->root;
    }
    for (uint32_t i = 0; i < hosts->ranks; i++) {
        port_of[i] = number(crowd->port_of[ranks[i]], come, &hosts->crowd.ports);
    }
    hosts->crowd.host_of = host_of;
    hosts->crowd.port_of = port_of;
    hosts->crowd.processors = processors;
    hosts->crowd.is_crowded = crowd->is_crowded;
    rc = ibshift_nodes_make(host_of, hosts->ranks, &hosts->nodes);
    if (rc != 0) {
        free(taken);
        hosts->memory = NULL;
    }
    return rc;
}

void ibshift_hosts_free(struct ibshift_hosts *hosts)
{
    if (hosts->memory != NULL) {
        ibshift_nodes_free(&hosts->nodes);
        free(hosts->memory);
        hosts->memory = NULL;
    }
}
