/*
 * By node, without trees: each node's ranks send to their leader, that of the root's node being the
 * root, and leaders to the root. A leader needs to know the sizes of its node's blocks alone, which
 * gatherv tells it first (IBSHIFT_ALG_SIZES_NODE). Cost for N nodes of p ranks: p - 1 messages of m
 * bytes into each leader, N - 1 of p m bytes into the root. Any P, any nodes, any root.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_gather_linear;

static const struct ibshift_composition by_node = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_RECV,
    .count = 3,
    .phase =
        {
            {&ibshift_alg_gather_linear, IBSHIFT_AMONG_TEAM, IBSHIFT_AT_SEND, IBSHIFT_AT_TEAM},
            {&ibshift_alg_gather_linear, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_TEAM, IBSHIFT_AT_ALL},
            {.alg = NULL},
        },
};

IBSHIFT_COMPOSED_BLOCKS(by_node)

const struct ibshift_alg ibshift_alg_gather_by_node_linear = {
    .collective = IBSHIFT_GATHER,
    .name = "by_node_linear",
    .doc = "ranks send to their node's leader, leaders to the root",
    .cost = "p-1 messages of m bytes into each leader, N-1 of p m bytes into the root",
    .flags =
        IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_SIZES_NODE | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
