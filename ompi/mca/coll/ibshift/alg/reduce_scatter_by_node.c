/*
 * By node: a node's ranks are cut into l teams. What the teams of one number want is reduced up a
 * tree in each node to that team's leader; these exchange and fold what each node wants, and scatter
 * it down a tree. Where ranks are not in the order of teams, a copy of all puts them there first.
 * Cost for N nodes of p ranks: ceil(log_{k+1} p) rounds with l messages of P m / l bytes, N - 1
 * messages of p m / l bytes, ceil(log_{k+1} (p / l)) rounds. Any P; an operator that does not commute
 * wants the ranks in order of their nodes.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_reduce_knomial;
extern const struct ibshift_alg ibshift_alg_reduce_scatter_linear;
extern const struct ibshift_alg ibshift_alg_scatter_nway;

static const struct ibshift_composition by_node = {
    .is_blocks = true,
    .all = IBSHIFT_SEND,
    .count = 4,
    .phase =
        {
            {.alg = NULL},
            {&ibshift_alg_reduce_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_ALL, IBSHIFT_AT_PART},
            {&ibshift_alg_reduce_scatter_linear, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_PART,
             IBSHIFT_AT_TEAM},
            {&ibshift_alg_scatter_nway, IBSHIFT_AMONG_TEAM, IBSHIFT_AT_TEAM, IBSHIFT_AT_RECV},
        },
};

IBSHIFT_COMPOSED_BLOCKS(by_node)

const struct ibshift_alg ibshift_alg_reduce_scatter_by_node = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "by_node",
    .doc = "nodes reduce to their leaders, which exchange the nodes' shares and scatter them",
    .cost = "log_{k+1} p rounds of P m/l bytes in a node, N-1 messages of p m/l between N nodes",
    .instead = "linear",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
