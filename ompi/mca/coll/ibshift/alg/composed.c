/*
 * The rows that are plans of other rows (plan/composition.h): by node, and two rows of all ranks one after
 * the other. N nodes of p ranks, l leaders of a node. An operator that does not commute wants the ranks
 * in the order of their nodes, and so do scans.
 */
#include "plan/composition.h"

extern const struct ibshift_alg ibshift_alg_barrier_dissemination;
extern const struct ibshift_alg ibshift_alg_bcast_knomial;
extern const struct ibshift_alg ibshift_alg_bcast_multicast;
extern const struct ibshift_alg ibshift_alg_scatter_linear;
extern const struct ibshift_alg ibshift_alg_scatter_nway;
extern const struct ibshift_alg ibshift_alg_gather_linear;
extern const struct ibshift_alg ibshift_alg_gather_nway;
extern const struct ibshift_alg ibshift_alg_allgather_bruck;
extern const struct ibshift_alg ibshift_alg_allgather_dissemination;
extern const struct ibshift_alg ibshift_alg_allgather_modified_ring;
extern const struct ibshift_alg ibshift_alg_allgather_recursive_doubling;
extern const struct ibshift_alg ibshift_alg_reduce_knomial;
extern const struct ibshift_alg ibshift_alg_allreduce_recursive_doubling;
extern const struct ibshift_alg ibshift_alg_reduce_scatter_linear;
extern const struct ibshift_alg ibshift_alg_reduce_scatter_recursive_halving;
extern const struct ibshift_alg ibshift_alg_scan_recursive_doubling;
extern const struct ibshift_alg ibshift_alg_exscan_recursive_doubling;

/* Defines the functions of the composition of that name; and names them in its row. */
#define COMPOSED(name)                                                                             \
    static uint32_t name##_rounds(const struct ibshift_plan *plan, uint32_t rank)                  \
    {                                                                                              \
        return ibshift_compose_rounds(&(name), plan, rank);                                        \
    }                                                                                              \
    static uint32_t name##_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,    \
                                struct ibshift_step *out)                                          \
    {                                                                                              \
        return ibshift_compose_emit(&(name), plan, rank, round, out);                              \
    }                                                                                              \
    static uint32_t name##_pieces(const struct ibshift_plan *plan)                                 \
    {                                                                                              \
        return ibshift_compose_pieces(&(name), plan);                                              \
    }                                                                                              \
    static uint32_t name##_tmp(const struct ibshift_plan *plan, uint32_t rank)                     \
    {                                                                                              \
        return ibshift_compose_tmp(&(name), plan, rank);                                           \
    }                                                                                              \
    static uint32_t name##_tmp_block(const struct ibshift_plan *plan, uint32_t rank,               \
                                     uint32_t slot)                                                \
    {                                                                                              \
        return ibshift_compose_tmp_block(&(name), plan, rank, slot);                               \
    }

#define FUNCTIONS(name)                                                                            \
    .rounds = name##_rounds, .emit = name##_emit, .pieces = name##_pieces, .tmp = name##_tmp,      \
    .tmp_block = name##_tmp_block

static const struct ibshift_composition barrier_by_node = {
    .count = 3,
    .phase = {{&ibshift_alg_reduce_knomial, AMONG_NODE, AT_NOTHING, AT_NOTHING},
              {&ibshift_alg_barrier_dissemination, AMONG_LEADERS, AT_NOTHING, AT_NOTHING},
              {&ibshift_alg_bcast_knomial, AMONG_NODE, AT_NOTHING, AT_NOTHING}},
};
COMPOSED(barrier_by_node)
const struct ibshift_alg ibshift_alg_barrier_by_node = {
    .collective = IBSHIFT_BARRIER,
    .name = "by_node",
    .doc = "ranks report to their leader, leaders to each other, and then release their ranks",
    .cost = "2 log_{k+1} p rounds in a node of p ranks, log_{k+1} N between N nodes, no bytes",
    .flags = IBSHIFT_ALG_NODES,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(barrier_by_node),
};

/* The root leads its node; S segments follow each other. */
static const struct ibshift_composition bcast_by_node = {
    .is_rooted = true,
    .is_cut = true,
    .count = 2,
    .phase = {{&ibshift_alg_bcast_knomial, AMONG_LEADERS, AT_RECV, AT_RECV},
              {&ibshift_alg_bcast_knomial, AMONG_NODE, AT_RECV, AT_RECV}},
};
COMPOSED(bcast_by_node)
const struct ibshift_alg ibshift_alg_bcast_by_node = {
    .collective = IBSHIFT_BCAST,
    .name = "by_node",
    .doc = "a tree between the nodes, then one in each node",
    .cost =
        "log_{k+1} N rounds between N nodes, log_{k+1} p in a node, k messages of n/S bytes each",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SEGMENTS,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(bcast_by_node),
};

/* Where ranks are not in the order of their nodes, a copy at the root puts them there first. */
static const struct ibshift_composition scatter_by_node = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_SEND,
    .count = 3,
    .phase = {{.alg = NULL},
              {&ibshift_alg_scatter_nway, AMONG_LEADERS, AT_ALL, AT_TEAM},
              {&ibshift_alg_scatter_nway, AMONG_TEAM, AT_TEAM, AT_RECV}},
};
COMPOSED(scatter_by_node)
const struct ibshift_alg ibshift_alg_scatter_by_node = {
    .collective = IBSHIFT_SCATTER,
    .name = "by_node",
    .doc = "a tree between the nodes, then one in each node",
    .cost = "log_{k+1} N rounds between N nodes, log_{k+1} p in a node, (N-1)p m bytes there",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(scatter_by_node),
};

/* A leader needs to know the sizes of its node's blocks alone, which scatterv tells it first. */
static const struct ibshift_composition scatter_by_node_linear = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_SEND,
    .count = 3,
    .phase = {{.alg = NULL},
              {&ibshift_alg_scatter_linear, AMONG_LEADERS, AT_ALL, AT_TEAM},
              {&ibshift_alg_scatter_linear, AMONG_TEAM, AT_TEAM, AT_RECV}},
};
COMPOSED(scatter_by_node_linear)
const struct ibshift_alg ibshift_alg_scatter_by_node_linear = {
    .collective = IBSHIFT_SCATTER,
    .name = "by_node_linear",
    .doc = "the root sends to the leaders of nodes, and they to their ranks",
    .cost = "N-1 messages of p m bytes from the root, p-1 of m bytes from each leader",
    .flags =
        IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_SIZES_NODE | IBSHIFT_ALG_IN_PLACE,
    FUNCTIONS(scatter_by_node_linear),
};

static const struct ibshift_composition gather_by_node = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_RECV,
    .count = 3,
    .phase = {{&ibshift_alg_gather_nway, AMONG_TEAM, AT_SEND, AT_TEAM},
              {&ibshift_alg_gather_nway, AMONG_LEADERS, AT_TEAM, AT_ALL},
              {.alg = NULL}},
};
COMPOSED(gather_by_node)
const struct ibshift_alg ibshift_alg_gather_by_node = {
    .collective = IBSHIFT_GATHER,
    .name = "by_node",
    .doc = "a tree in each node, then one between the nodes",
    .cost = "log_{k+1} p rounds in a node, log_{k+1} N between N nodes, (N-1)p m bytes there",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(gather_by_node),
};

static const struct ibshift_composition gather_by_node_linear = {
    .is_rooted = true,
    .is_blocks = true,
    .all = IBSHIFT_RECV,
    .count = 3,
    .phase = {{&ibshift_alg_gather_linear, AMONG_TEAM, AT_SEND, AT_TEAM},
              {&ibshift_alg_gather_linear, AMONG_LEADERS, AT_TEAM, AT_ALL},
              {.alg = NULL}},
};
COMPOSED(gather_by_node_linear)
const struct ibshift_alg ibshift_alg_gather_by_node_linear = {
    .collective = IBSHIFT_GATHER,
    .name = "by_node_linear",
    .doc = "ranks send to their node's leader, leaders to the root",
    .cost = "p-1 messages of m bytes into each leader, N-1 of p m bytes into the root",
    .flags =
        IBSHIFT_ALG_NODES | IBSHIFT_ALG_SIZES_ALL | IBSHIFT_ALG_SIZES_NODE | IBSHIFT_ALG_IN_PLACE,
    FUNCTIONS(gather_by_node_linear),
};

/* Where ranks are not in the order of teams, a copy of all puts them there at last. */
static const struct ibshift_composition allgather_by_node = {
    .is_blocks = true,
    .all = IBSHIFT_RECV,
    .count = 4,
    .phase = {{&ibshift_alg_gather_nway, AMONG_TEAM, AT_SEND, AT_ALL},
              {&ibshift_alg_allgather_dissemination, AMONG_LEADERS, AT_ALL, AT_ALL},
              {&ibshift_alg_bcast_knomial, AMONG_NODE, AT_ALL, AT_ALL},
              {.alg = NULL}},
};
COMPOSED(allgather_by_node)
const struct ibshift_alg ibshift_alg_allgather_by_node = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "by_node",
    .doc = "teams gather at leaders, which disseminate between nodes and broadcast in their own",
    .cost = "log_{k+1} p/l + log2 N + log_{k+1} p rounds, (N-1)p m/l bytes between N nodes",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_INNER | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SIZES,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(allgather_by_node),
};

/* The root leads its node; S segments follow each other. */
static const struct ibshift_composition reduce_by_node = {
    .is_rooted = true,
    .is_cut = true,
    .count = 2,
    .phase = {{&ibshift_alg_reduce_knomial, AMONG_NODE, AT_SEND, AT_RESULT},
              {&ibshift_alg_reduce_knomial, AMONG_LEADERS, AT_RESULT, AT_RECV}},
};
COMPOSED(reduce_by_node)
const struct ibshift_alg ibshift_alg_reduce_by_node = {
    .collective = IBSHIFT_REDUCE,
    .name = "by_node",
    .doc = "a tree in each node, then one between the nodes",
    .cost =
        "log_{k+1} p rounds in a node, log_{k+1} N between N nodes, k messages and reductions each",
    .instead = "knomial",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(reduce_by_node),
};

static const struct ibshift_composition allreduce_by_node = {
    .is_cut = true,
    .count = 3,
    .phase = {{&ibshift_alg_reduce_knomial, AMONG_NODE, AT_SEND, AT_RECV},
              {&ibshift_alg_allreduce_recursive_doubling, AMONG_LEADERS, AT_RECV, AT_RECV},
              {&ibshift_alg_bcast_knomial, AMONG_NODE, AT_RECV, AT_RECV}},
};
COMPOSED(allreduce_by_node)
const struct ibshift_alg ibshift_alg_allreduce_by_node = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "by_node",
    .doc = "nodes reduce to leaders, which use recursive doubling and broadcast to their nodes",
    .cost = "2 log_{k+1} p rounds in a node, log2 N between N nodes, n/(S l) bytes each",
    .instead = "recursive_doubling",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_INNER | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SEGMENTS |
             IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(allreduce_by_node),
};

/* What the teams of one number want is reduced to that team's leader in each node. Where ranks are not in
 * the order of teams, a copy of all puts them there first. */
static const struct ibshift_composition reduce_scatter_by_node = {
    .is_blocks = true,
    .all = IBSHIFT_SEND,
    .count = 4,
    .phase = {{.alg = NULL},
              {&ibshift_alg_reduce_knomial, AMONG_NODE, AT_ALL, AT_PART},
              {&ibshift_alg_reduce_scatter_linear, AMONG_LEADERS, AT_PART, AT_TEAM},
              {&ibshift_alg_scatter_nway, AMONG_TEAM, AT_TEAM, AT_RECV}},
};
COMPOSED(reduce_scatter_by_node)
const struct ibshift_alg ibshift_alg_reduce_scatter_by_node = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "by_node",
    .doc = "nodes reduce to their leaders, which exchange the nodes' shares and scatter them",
    .cost = "log_{k+1} p rounds of P m/l bytes in a node, N-1 messages of p m/l between N nodes",
    .instead = "linear",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_INNER | IBSHIFT_ALG_LEADERS | IBSHIFT_ALG_SIZES |
             IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(reduce_scatter_by_node),
};

/* The last rank of each node has the node's sum; every rank puts the nodes before its own before what it has. */
static const struct ibshift_composition scan_by_node = {
    .is_prefix = true,
    .is_cut = true,
    .count = 4,
    .phase = {{&ibshift_alg_scan_recursive_doubling, AMONG_NODE, AT_SEND, AT_RECV},
              {&ibshift_alg_exscan_recursive_doubling, AMONG_LEADERS, AT_RECV, AT_BEFORE},
              {&ibshift_alg_bcast_knomial, AMONG_NODE, AT_BEFORE, AT_BEFORE},
              {.alg = NULL}},
};
COMPOSED(scan_by_node)
const struct ibshift_alg ibshift_alg_scan_by_node = {
    .collective = IBSHIFT_SCAN,
    .name = "by_node",
    .doc = "each node scans, the nodes' sums are scanned, and each node adds those before it",
    .cost = "log2 p + log_{k+1} p rounds in a node, log2 N between N nodes, n/S bytes each",
    .instead = "recursive_doubling",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_INNER | IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(scan_by_node),
};

/* As in scan, but what the ranks of a node have scanned goes one rank further. */
static const struct ibshift_composition exscan_by_node = {
    .is_prefix = true,
    .is_exclusive = true,
    .is_cut = true,
    .count = 4,
    .phase = {{&ibshift_alg_scan_recursive_doubling, AMONG_NODE, AT_SEND, AT_OWN},
              {&ibshift_alg_exscan_recursive_doubling, AMONG_LEADERS, AT_OWN, AT_BEFORE},
              {&ibshift_alg_bcast_knomial, AMONG_NODE, AT_BEFORE, AT_BEFORE},
              {.alg = NULL}},
};
COMPOSED(exscan_by_node)
const struct ibshift_alg ibshift_alg_exscan_by_node = {
    .collective = IBSHIFT_EXSCAN,
    .name = "by_node",
    .doc = "each node scans, the nodes' sums are scanned, and each node adds those before it",
    .cost = "log2 p + log_{k+1} p + 1 rounds in a node, log2 N between N nodes, n/S bytes each",
    .instead = "recursive_doubling",
    .flags = IBSHIFT_ALG_NODES | IBSHIFT_ALG_INNER | IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(exscan_by_node),
};

/* Few rounds for vectors of 8 to 64 KiB among many ranks. */
static const struct ibshift_composition bcast_spread_bruck = {
    .root_has_all = true,
    .count = 2,
    .phase = {{&ibshift_alg_scatter_nway, AMONG_ALL, AT_RECV, AT_PIECE},
              {&ibshift_alg_allgather_bruck, AMONG_ALL, AT_PIECE, AT_RECV}},
};
COMPOSED(bcast_spread_bruck)
const struct ibshift_alg ibshift_alg_bcast_spread_bruck = {
    .collective = IBSHIFT_BCAST,
    .name = "spread_bruck",
    .doc = "n-way scatter of P parts, then Bruck's allgather",
    .cost = "2 log_{k+1} P rounds, k messages per round, about 2n bytes",
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(bcast_spread_bruck),
};

/* Nobody sends to the root. */
static const struct ibshift_composition bcast_spread_doubling = {
    .root_has_all = true,
    .is_direct = true,
    .count = 2,
    .phase = {{&ibshift_alg_scatter_nway, AMONG_ALL, AT_RECV, AT_PIECE},
              {&ibshift_alg_allgather_recursive_doubling, AMONG_ALL, AT_PIECE, AT_RECV}},
};
COMPOSED(bcast_spread_doubling)
const struct ibshift_alg ibshift_alg_bcast_spread_doubling = {
    .collective = IBSHIFT_BCAST,
    .name = "spread_doubling",
    .doc = "n-way scatter of P parts, then recursive doubling",
    .cost = "log_{k+1} P + log2 P rounds, about 2n bytes; no power of two: 2 more rounds",
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(bcast_spread_doubling),
};

/* Long vectors hardly feel how the tree branches. */
static const struct ibshift_composition bcast_spread_ring = {
    .root_has_all = true,
    .is_direct = true,
    .count = 2,
    .phase = {{&ibshift_alg_scatter_nway, AMONG_ALL, AT_RECV, AT_PIECE, .radix = 5},
              {&ibshift_alg_allgather_modified_ring, AMONG_ALL, AT_PIECE, AT_RECV}},
};
COMPOSED(bcast_spread_ring)
const struct ibshift_alg ibshift_alg_bcast_spread_ring = {
    .collective = IBSHIFT_BCAST,
    .name = "spread_ring",
    .doc = "n-way scatter of P parts, then each rank sends its part to all others",
    .cost = "log_6 P rounds, then P-1 messages of n/P bytes",
    FUNCTIONS(bcast_spread_ring),
};

static const struct ibshift_composition reduce_halving_gather = {
    .count = 2,
    .phase = {{&ibshift_alg_reduce_scatter_recursive_halving, AMONG_ALL, AT_SEND, AT_KEPT},
              {&ibshift_alg_gather_nway, AMONG_ALL, AT_KEPT, AT_RECV}},
};
COMPOSED(reduce_halving_gather)
const struct ibshift_alg ibshift_alg_reduce_halving_gather = {
    .collective = IBSHIFT_REDUCE,
    .name = "halving_gather",
    .doc = "reduce_scatter by recursive halving, then an n-way gather",
    .cost = "log2 P + log_{k+1} P rounds, 2n(P-1)/P bytes",
    .instead = "knomial",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(reduce_halving_gather),
};

/* As exchange, without P messages to the root at once. */
static const struct ibshift_composition reduce_exchange_gather = {
    .count = 2,
    .phase = {{&ibshift_alg_reduce_scatter_linear, AMONG_ALL, AT_SEND, AT_KEPT},
              {&ibshift_alg_gather_nway, AMONG_ALL, AT_KEPT, AT_RECV, .radix = 5}},
};
COMPOSED(reduce_exchange_gather)
const struct ibshift_alg ibshift_alg_reduce_exchange_gather = {
    .collective = IBSHIFT_REDUCE,
    .name = "exchange_gather",
    .doc = "every rank reduces one part of all vectors, then an n-way gather",
    .cost = "P-1 messages of n/P bytes, P-1 reductions of n/P, log_6 P rounds",
    FUNCTIONS(reduce_exchange_gather),
};

static const struct ibshift_composition allreduce_halving_bruck = {
    .count = 2,
    .phase = {{&ibshift_alg_reduce_scatter_recursive_halving, AMONG_ALL, AT_SEND, AT_PIECE},
              {&ibshift_alg_allgather_bruck, AMONG_ALL, AT_PIECE, AT_RECV}},
};
COMPOSED(allreduce_halving_bruck)
const struct ibshift_alg ibshift_alg_allreduce_halving_bruck = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "halving_bruck",
    .doc = "reduce_scatter by recursive halving, then Bruck's allgather",
    .cost = "log2 P + log_{k+1} P rounds, 2n(P-1)/P bytes",
    .instead = "knomial",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(allreduce_halving_bruck),
};

static const struct ibshift_composition allreduce_exchange_bruck = {
    .count = 2,
    .phase = {{&ibshift_alg_reduce_scatter_linear, AMONG_ALL, AT_SEND, AT_PIECE},
              {&ibshift_alg_allgather_bruck, AMONG_ALL, AT_PIECE, AT_RECV, .radix = 5}},
};
COMPOSED(allreduce_exchange_bruck)
const struct ibshift_alg ibshift_alg_allreduce_exchange_bruck = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "exchange_bruck",
    .doc = "every rank reduces one part of all vectors, then Bruck's allgather",
    .cost = "P-1 messages of n/P bytes, P-1 reductions of n/P, log_6 P rounds",
    FUNCTIONS(allreduce_exchange_bruck),
};

/* What one datagram carries: the vector is not cut. */
static const struct ibshift_composition allreduce_multicast = {
    .count = 2,
    .phase = {{&ibshift_alg_reduce_knomial, AMONG_ALL, AT_SEND, AT_RECV},
              {&ibshift_alg_bcast_multicast, AMONG_ALL, AT_RECV, AT_RECV}},
};
COMPOSED(allreduce_multicast)
const struct ibshift_alg ibshift_alg_allreduce_multicast = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "multicast",
    .doc = "k-nomial reduction to rank 0, which sends the result to all at once",
    .cost = "log_{k+1} P rounds, k messages of n bytes per round, then a datagram of n bytes",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_MULTICAST,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(allreduce_multicast),
};

/* The fewest messages, for short blocks. */
static const struct ibshift_composition reduce_scatter_tree = {
    .count = 2,
    .phase = {{&ibshift_alg_reduce_knomial, AMONG_ALL, AT_SEND, AT_ROOT},
              {&ibshift_alg_scatter_nway, AMONG_ALL, AT_ROOT, AT_RECV}},
};
COMPOSED(reduce_scatter_tree)
const struct ibshift_alg ibshift_alg_reduce_scatter_tree = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "tree",
    .doc = "k-nomial reduction to rank 0, then an n-way scatter",
    .cost = "2 log_{k+1} P rounds, k messages of P m bytes per round up",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    FUNCTIONS(reduce_scatter_tree),
};
