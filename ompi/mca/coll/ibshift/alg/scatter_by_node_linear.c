/*
 * By node, without trees: the root sends to one leader of each node, being that of its own, and these
 * to their ranks. A leader needs to know the sizes of its node's blocks alone, which scatterv tells
 * it first (IBSHIFT_ALG_SIZES_NODE). Cost for N nodes of p ranks: N - 1 messages of p m bytes from
 * the root, p - 1 of m bytes from each leader. Any P, any nodes, any root.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_scatter_linear;

static const struct ibshift_composition by_node = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_SEND,
    .count = 3,
    .phase =
        {
            {.alg = NULL},
            {&ibshift_alg_scatter_linear, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_ALL, IBSHIFT_AT_TEAM},
            {&ibshift_alg_scatter_linear, IBSHIFT_AMONG_TEAM, IBSHIFT_AT_TEAM, IBSHIFT_AT_RECV},
        },
};

IBSHIFT_COMPOSED_BLOCKS(by_node)

const struct ibshift_alg ibshift_alg_scatter_by_node_linear = {
    .collective = IBSHIFT_SCATTER,
    .name = "by_node_linear",
    .doc = "the root sends to the leaders of nodes, and they to their ranks",
    .cost = "N-1 messages of p m bytes from the root, p-1 of m bytes from each leader",
    .flags =
        IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_SIZES_NODE | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
