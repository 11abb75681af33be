/*
 * By node: down a tree of one leader a node, that of the root's node being the root, then down a
 * tree in each node. Where ranks are not in the order of their nodes, a copy at the root puts them
 * there first. Cost for N nodes of p ranks: ceil(log_{k+1} N) + ceil(log_{k+1} p) rounds of k
 * messages; (N - 1) p m bytes from the root's node. Any P, any nodes, any root.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_scatter_nway;

static const struct ibshift_composition by_node = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_SEND,
    .count = 3,
    .phase =
        {
            {.alg = NULL},
            {&ibshift_alg_scatter_nway, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_ALL, IBSHIFT_AT_TEAM},
            {&ibshift_alg_scatter_nway, IBSHIFT_AMONG_TEAM, IBSHIFT_AT_TEAM, IBSHIFT_AT_RECV},
        },
};

IBSHIFT_COMPOSED_BLOCKS(by_node)

const struct ibshift_alg ibshift_alg_scatter_by_node = {
    .collective = IBSHIFT_SCATTER,
    .name = "by_node",
    .doc = "a tree between the nodes, then one in each node",
    .cost = "log_{k+1} N rounds between N nodes, log_{k+1} p in a node, (N-1)p m bytes there",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
