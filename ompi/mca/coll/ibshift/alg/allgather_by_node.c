/*
 * By node: a node's ranks are cut into l teams. Each gathers up a tree at its leader, leaders of one
 * number disseminate what they have among the nodes, and tell their nodes down a tree. Where ranks
 * are not in the order of teams, a copy of all puts them there. Cost for N nodes of p ranks:
 * ceil(log_{k+1} (p / l)) + ceil(log2 N) + ceil(log_{k+1} p) rounds; (N - 1) p m / l bytes between
 * nodes, l trees of P m / l bytes within. Any P, any nodes.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_gather_nway;
extern const struct ibshift_alg ibshift_alg_allgather_dissemination;
extern const struct ibshift_alg ibshift_alg_bcast_knomial;

static const struct ibshift_composition by_node = {
    .is_blocks = true,
    .all = IBSHIFT_RECV,
    .count = 4,
    .phase =
        {
            {&ibshift_alg_gather_nway, IBSHIFT_AMONG_TEAM, IBSHIFT_AT_SEND, IBSHIFT_AT_ALL},
            {&ibshift_alg_allgather_dissemination, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_ALL,
             IBSHIFT_AT_ALL},
            {&ibshift_alg_bcast_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_ALL, IBSHIFT_AT_ALL},
            {.alg = NULL},
        },
};

IBSHIFT_COMPOSED_BLOCKS(by_node)

const struct ibshift_alg ibshift_alg_allgather_by_node = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "by_node",
    .doc = "teams gather at leaders, which disseminate between nodes and broadcast in their own",
    .cost = "log_{k+1} p/l + log2 N + log_{k+1} p rounds, (N-1)p m/l bytes between N nodes",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SIZES,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
