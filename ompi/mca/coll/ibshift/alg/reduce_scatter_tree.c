/*
 * k-nomial reduction to rank 0, then an n-way scatter: the fewest messages, for short blocks. Cost: 2
 * ceil(log_{k+1} P) rounds, up with k messages of P m bytes per round. Any P, any operator.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_reduce_knomial;
extern const struct ibshift_alg ibshift_alg_scatter_nway;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_reduce_knomial, &ibshift_alg_scatter_nway},
    .send = {IBSHIFT_RELAY_SEND, IBSHIFT_RELAY_ALL},
    .recv = {IBSHIFT_RELAY_ALL, IBSHIFT_RELAY_RECV},
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_reduce_scatter_tree = {
    .collective = IBSHIFT_REDUCE_SCATTER,
    .name = "tree",
    .doc = "k-nomial reduction to rank 0, then an n-way scatter",
    .cost = "2 log_{k+1} P rounds, k messages of P m bytes per round up",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
