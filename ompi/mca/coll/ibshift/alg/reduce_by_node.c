/*
 * By node: up a tree in each node to its leader, that of the root's node being the root, then up a
 * tree of leaders; S segments follow each other. Cost: ceil(log_{k+1} p) + ceil(log_{k+1} N) rounds
 * a segment, k messages of n / S bytes and k reductions each. Any P, any root; an operator that does
 * not commute wants the ranks in order of their nodes.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_reduce_knomial;

static const struct ibshift_composition by_node = {
    .is_rooted = true,
    .is_cut = true,
    .count = 2,
    .phase =
        {
            {&ibshift_alg_reduce_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_SEND, IBSHIFT_AT_RESULT},
            {&ibshift_alg_reduce_knomial, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_RESULT,
             IBSHIFT_AT_RECV},
        },
};

IBSHIFT_COMPOSED(by_node)

const struct ibshift_alg ibshift_alg_reduce_by_node = {
    .collective = IBSHIFT_REDUCE,
    .name = "by_node",
    .doc = "a tree in each node, then one between the nodes",
    .cost =
        "log_{k+1} p rounds in a node, log_{k+1} N between N nodes, k messages and reductions each",
    .instead = "knomial",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
