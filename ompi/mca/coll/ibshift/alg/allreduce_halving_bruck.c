/*
 * Recursive halving leaves each rank a piece of the result, and Bruck's allgather brings them to all.
 * Cost: log2 P + ceil(log_{k+1} P) rounds, 2 n (P - 1) / P bytes, n copied; no power of two: 2 more
 * rounds of up to n bytes. Any P; commutative operators.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_reduce_scatter_recursive_halving;
extern const struct ibshift_alg ibshift_alg_allgather_bruck;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_reduce_scatter_recursive_halving, &ibshift_alg_allgather_bruck},
    .send = {IBSHIFT_RELAY_SEND, IBSHIFT_RELAY_OWN},
    .recv = {IBSHIFT_RELAY_OWN, IBSHIFT_RELAY_RECV},
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_allreduce_halving_bruck = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "halving_bruck",
    .doc = "reduce_scatter by recursive halving, then Bruck's allgather",
    .cost = "log2 P + log_{k+1} P rounds, 2n(P-1)/P bytes; no power of two: 2 rounds more",
    .instead = "knomial",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_COMMUTATIVE_ONLY,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .pieces = ibshift_relay_pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
