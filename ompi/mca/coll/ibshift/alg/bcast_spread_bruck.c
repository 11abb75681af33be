/*
 * n-way scatter of P pieces, then Bruck's allgather of them: few rounds for vectors of 8 to 64 KiB among
 * many ranks. Cost: 2 ceil(log_{k+1} P) rounds, k messages per round, about 2 n bytes. Any P, any root.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_scatter_nway;
extern const struct ibshift_alg ibshift_alg_allgather_bruck;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_scatter_nway, &ibshift_alg_allgather_bruck},
    .send = {IBSHIFT_RELAY_RECV, IBSHIFT_RELAY_OWN},
    .recv = {IBSHIFT_RELAY_OWN, IBSHIFT_RELAY_RECV},
    .root_has_all = true,
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_bcast_spread_bruck = {
    .collective = IBSHIFT_BCAST,
    .name = "spread_bruck",
    .doc = "n-way scatter of P parts, then Bruck's allgather",
    .cost = "2 log_{k+1} P rounds, k messages per round, about 2n bytes",
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = ibshift_relay_pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
