/*
 * By node: the vector is cut into a part for each of l leaders of a node and S segments. A part is
 * reduced up a tree in each node to its leader, between the nodes by recursive doubling, and goes
 * down a tree in each node. Cost: 2 ceil(log_{k+1} p) rounds of k messages in a node of p ranks,
 * ceil(log2 N) between N nodes, n / (S l) bytes each. Any P; an operator that does not commute wants
 * the ranks in order of their nodes.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_reduce_knomial;
extern const struct ibshift_alg ibshift_alg_allreduce_recursive_doubling;
extern const struct ibshift_alg ibshift_alg_bcast_knomial;

static const struct ibshift_composition by_node = {
    .is_cut = true,
    .count = 3,
    .phase =
        {
            {&ibshift_alg_reduce_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_SEND, IBSHIFT_AT_RECV},
            {&ibshift_alg_allreduce_recursive_doubling, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_RECV,
             IBSHIFT_AT_RECV},
            {&ibshift_alg_bcast_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_RECV, IBSHIFT_AT_RECV},
        },
};

IBSHIFT_COMPOSED(by_node)

const struct ibshift_alg ibshift_alg_allreduce_by_node = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "by_node",
    .doc = "nodes reduce to leaders, which use recursive doubling and broadcast to their nodes",
    .cost = "2 log_{k+1} p rounds in a node, log2 N between N nodes, n/(S l) bytes each",
    .instead = "recursive_doubling",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
