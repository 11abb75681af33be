/*
 * Which ranks share a node: what plans of plans (plan/composition.h) are made along. Belongs to the
 * caller, is read by emit() only, and does not change while a plan uses it.
 *
 *   node_of[rank]   its node
 *   place_of[rank]  its place among the ranks of that node, which are in ascending order
 *   first[node]     where the node's ranks begin in rank_at; first[nodes]: all ranks
 *
 * Five ranks on two nodes, dealt in turn: node_of = { 0, 1, 0, 1, 0 }, place_of = { 0, 0, 1, 1, 2 },
 * first = { 0, 3, 5 }, rank_at = { 0, 2, 4, 1, 3 }.
 */
#ifndef IBSHIFT_PLAN_NODES_H
#define IBSHIFT_PLAN_NODES_H

#include <stddef.h>

#include "plan/step.h"

struct ibshift_nodes {
    uint32_t nodes;
    uint32_t most;   /* ranks on the fullest node */
    uint32_t least;  /* ... on the emptiest */
    bool is_ordered; /* each node has the ranks after those of the node before it */
    bool is_spaced;  /* the ranks of each node are as far apart as its first two */
    const uint32_t *node_of, *place_of, *first, *rank_at;
};

/* host_of: any numbers below ranks, equal for ranks of one node. Nodes are numbered as ranks come
 * to them. 0, -EINVAL for another number or -ENOMEM; then nothing is to be freed. */
int ibshift_nodes_make(const uint32_t *host_of, uint32_t ranks, struct ibshift_nodes *nodes);
void ibshift_nodes_free(struct ibshift_nodes *nodes);

/* A plan without nodes has one rank on each. */
static inline uint32_t ibshift_nodes_count(const struct ibshift_plan *plan)
{
    return plan->nodes != NULL ? plan->nodes->nodes : plan->ranks;
}

static inline uint32_t ibshift_nodes_of(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->nodes != NULL ? plan->nodes->node_of[rank] : rank;
}

static inline uint32_t ibshift_nodes_place(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->nodes != NULL ? plan->nodes->place_of[rank] : 0;
}

/* Ranks of a node. */
static inline uint32_t ibshift_nodes_size(const struct ibshift_plan *plan, uint32_t node)
{
    return plan->nodes != NULL ? plan->nodes->first[node + 1] - plan->nodes->first[node] : 1;
}

/* The first node that no other has more ranks than. */
static inline uint32_t ibshift_nodes_fullest(const struct ibshift_plan *plan)
{
    uint32_t node = 0;

    while (plan->nodes != NULL && ibshift_nodes_size(plan, node) < plan->nodes->most) {
        node++;
    }
    return node;
}

static inline uint32_t ibshift_nodes_rank(const struct ibshift_plan *plan, uint32_t node,
                                          uint32_t place)
{
    return plan->nodes != NULL ? plan->nodes->rank_at[plan->nodes->first[node] + place] : node;
}

/* How far apart the ranks of a node are that has them evenly spaced. */
static inline int32_t ibshift_nodes_spacing(const struct ibshift_plan *plan, uint32_t node)
{
    return ibshift_nodes_size(plan, node) < 2
               ? 1
               : (int32_t)(ibshift_nodes_rank(plan, node, 1) - ibshift_nodes_rank(plan, node, 0));
}

#endif
