/*
 * Times that no plan gets below, whichever routes it takes, on the cables of a fabric among the hosts of a job. Unit: one block on
 * the fastest host's cable.
 *
 * What each rank has must come to all (allgather), or from all to each (reduce_scatter): of a set of nodes with a host in it, what
 * the others have crosses the cables into it, once each. The set that takes longest is found by maximum flows. In an all-to-all
 * any lengths of the cables prove a time: all blocks by their distances, over all cables' capacities by their lengths; lengths
 * grow on cables that shortest ways use most.
 */
#ifndef IBSHIFT_BOUND_LEAST_H
#define IBSHIFT_BOUND_LEAST_H

#include "fabric/table/placement.h"
#include "pool.h"

/* Cables between switches that are up, and those of the job's hosts, one edge each way: e and e ^ 1 are one cable. */
struct fabric_edge {
    uint32_t from, to;
    uint32_t link;   /* directed link of the fabric */
    double capacity; /* blocks in a unit of time */
};

/* Nodes: the members of the placement, then the fabric's switches. */
struct fabric_net {
    const struct ibshift_placement *placement;
    struct pool *pool;
    uint32_t nodes, edges;
    struct fabric_edge *edge;
    uint32_t *first, *leaving; /* node -> leaving[first[node] .. first[node + 1]): edges */
};

void fabric_net_make(struct fabric_net *net, const struct ibshift_placement *placement,
                     struct pool *pool);
/* The fabric's node that a node of the net stands for. */
uint32_t fabric_net_node(const struct fabric_net *net, uint32_t node);

/* is_inside: [node of the net], of the pool. */
double fabric_bound_cut(const struct fabric_net *net, bool **is_inside);
/* lengths: [edge], of the pool. */
double fabric_bound_lengths(const struct fabric_net *net, double **lengths);

#endif
