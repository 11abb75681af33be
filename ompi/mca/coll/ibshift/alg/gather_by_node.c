/*
 * By node: up a tree in each node to its leader, that of the root's node being the root, then up a
 * tree of leaders. Where ranks are not in the order of their nodes, a copy at the root puts them
 * there. Cost for N nodes of p ranks: ceil(log_{k+1} p) + ceil(log_{k+1} N) rounds of k messages;
 * (N - 1) p m bytes into the root's node. Any P, any nodes, any root.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_gather_nway;

static const struct ibshift_composition by_node = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_RECV,
    .count = 3,
    .phase =
        {
            {&ibshift_alg_gather_nway, IBSHIFT_AMONG_TEAM, IBSHIFT_AT_SEND, IBSHIFT_AT_TEAM},
            {&ibshift_alg_gather_nway, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_TEAM, IBSHIFT_AT_ALL},
            {.alg = NULL},
        },
};

IBSHIFT_COMPOSED_BLOCKS(by_node)

const struct ibshift_alg ibshift_alg_gather_by_node = {
    .collective = IBSHIFT_GATHER,
    .name = "by_node",
    .doc = "a tree in each node, then one between the nodes",
    .cost = "log_{k+1} p rounds in a node, log_{k+1} N between N nodes, (N-1)p m bytes there",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
