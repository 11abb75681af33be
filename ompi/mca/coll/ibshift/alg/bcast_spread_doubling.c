/*
 * n-way scatter of P parts, then recursive doubling, in which nobody sends to the root. Cost:
 * ceil(log_{k+1} P) + log2 P rounds, about 2 n bytes; no power of two: 2 more rounds. Any P, any
 * root.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_scatter_nway;
extern const struct ibshift_alg ibshift_alg_allgather_recursive_doubling;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_scatter_nway, &ibshift_alg_allgather_recursive_doubling},
    .send = {IBSHIFT_RELAY_RECV, IBSHIFT_RELAY_OWN},
    .recv = {IBSHIFT_RELAY_OWN, IBSHIFT_RELAY_RECV},
    .root_has_all = true,
    .is_direct = true,
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_bcast_spread_doubling = {
    .collective = IBSHIFT_BCAST,
    .name = "spread_doubling",
    .doc = "n-way scatter of P parts, then recursive doubling",
    .cost = "log_{k+1} P + log2 P rounds, about 2n bytes; no power of two: 2 more rounds",
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = ibshift_relay_pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
