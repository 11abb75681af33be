/*
 * By node, as in scan: but what the ranks of a node have scanned goes one rank further, and what the
 * nodes before it add up to is put before that. Cost: ceil(log2 p) + ceil(log_{k+1} p) + 1 rounds in
 * a node of p ranks, ceil(log2 N) between N nodes, n / S bytes each. Any P and operator; ranks in
 * the order of their nodes.
 */
#include "plan/compose.h"

extern const struct ibshift_alg ibshift_alg_scan_recursive_doubling;
extern const struct ibshift_alg ibshift_alg_exscan_recursive_doubling;
extern const struct ibshift_alg ibshift_alg_bcast_knomial;

static const struct ibshift_composition by_node = {
    .is_prefix = true,
    .is_exclusive = true,
    .is_cut = true,
    .count = 4,
    .phase =
        {
            {&ibshift_alg_scan_recursive_doubling, IBSHIFT_AMONG_NODE, IBSHIFT_AT_SEND,
             IBSHIFT_AT_OWN},
            {&ibshift_alg_exscan_recursive_doubling, IBSHIFT_AMONG_LEADERS, IBSHIFT_AT_OWN,
             IBSHIFT_AT_BEFORE},
            {&ibshift_alg_bcast_knomial, IBSHIFT_AMONG_NODE, IBSHIFT_AT_BEFORE, IBSHIFT_AT_BEFORE},
            {.alg = NULL},
        },
};

IBSHIFT_COMPOSED(by_node)

const struct ibshift_alg ibshift_alg_exscan_by_node = {
    .collective = IBSHIFT_EXSCAN,
    .name = "by_node",
    .doc = "each node scans, the nodes' sums are scanned, and each node adds those before it",
    .cost = "log2 p + log_{k+1} p + 1 rounds in a node, log2 N between N nodes, n/S bytes each",
    .instead = "recursive_doubling",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
