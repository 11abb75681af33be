/*
 * n-way scatter of P pieces, then each rank gives its own to all others but the root. Long vectors
 * hardly feel how the tree branches. Cost: ceil(log_6 P) rounds, P - 2 messages of n / P bytes. Any P,
 * any root.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_scatter_nway;
extern const struct ibshift_alg ibshift_alg_allgather_modified_ring;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_scatter_nway, &ibshift_alg_allgather_modified_ring},
    .send = {IBSHIFT_RELAY_RECV, IBSHIFT_RELAY_OWN},
    .recv = {IBSHIFT_RELAY_OWN, IBSHIFT_RELAY_RECV},
    .radix = {5},
    .root_has_all = true,
    .is_direct = true,
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_bcast_spread_ring = {
    .collective = IBSHIFT_BCAST,
    .name = "spread_ring",
    .doc = "n-way scatter of P parts, then each rank sends its part to all others",
    .cost = "log_6 P rounds, then P-1 messages of n/P bytes",
    .rounds = rounds,
    .emit = emit,
    .pieces = ibshift_relay_pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
