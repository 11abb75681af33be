/*
 * By node: the ranks of a node report to its leader up a tree, leaders disseminate among themselves,
 * and tell their nodes down the tree. Cost: 2 ceil(log_{k+1} p) rounds in a node of p ranks,
 * ceil(log_{k+1} N) between N nodes, messages without data. Any P, any nodes.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_reduce_knomial;
extern const struct ibshift_alg ibshift_alg_barrier_dissemination;
extern const struct ibshift_alg ibshift_alg_bcast_knomial;

static const struct ibshift_composition by_node = {
    .count = 3,
    .phase =
        {
            {&ibshift_alg_reduce_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_NOWHERE, IBSHIFT_NOWHERE},
            {&ibshift_alg_barrier_dissemination, IBSHIFT_AMONG_LEADERS, IBSHIFT_NOWHERE,
             IBSHIFT_NOWHERE},
            {&ibshift_alg_bcast_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_NOWHERE, IBSHIFT_NOWHERE},
        },
};

IBSHIFT_COMPOSED(by_node)

const struct ibshift_alg ibshift_alg_barrier_by_node = {
    .collective = IBSHIFT_BARRIER,
    .name = "by_node",
    .doc = "ranks report to their leader, leaders to each other, and then release their ranks",
    .cost = "2 log_{k+1} p rounds in a node of p ranks, log_{k+1} N between N nodes, no bytes",
    .flags = IBSHIFT_ALG_NODES,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
