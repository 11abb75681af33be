/*
 * By node: down a tree of one leader a node, that of the root's node being the root, then down a
 * tree in each node; S segments follow each other. Cost: ceil(log_{k+1} N) + ceil(log_{k+1} p)
 * rounds a segment, at most k messages of n / S bytes each. Any P, any nodes, any root.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_bcast_knomial;

static const struct ibshift_composition by_node = {
    .is_rooted = true,
    .is_cut = true,
    .count = 2,
    .phase =
        {
            {&ibshift_alg_bcast_knomial, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_RECV, IBSHIFT_AT_RECV},
            {&ibshift_alg_bcast_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_RECV, IBSHIFT_AT_RECV},
        },
};

IBSHIFT_COMPOSED(by_node)

const struct ibshift_alg ibshift_alg_bcast_by_node = {
    .collective = IBSHIFT_BCAST,
    .name = "by_node",
    .doc = "a tree between the nodes, then one in each node",
    .cost =
        "log_{k+1} N rounds between N nodes, log_{k+1} p in a node, k messages of n/S bytes each",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SEGMENTS,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
