/*
 * Each rank folds one piece of all vectors, and Bruck's allgather brings the results to all. Cost:
 * P - 1 messages of n / P bytes, P - 1 reductions, ceil(log_6 P) rounds. Any P, any operator.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_reduce_scatter_linear;
extern const struct ibshift_alg ibshift_alg_allgather_bruck;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_reduce_scatter_linear, &ibshift_alg_allgather_bruck},
    .send = {IBSHIFT_RELAY_SEND, IBSHIFT_RELAY_OWN},
    .recv = {IBSHIFT_RELAY_OWN, IBSHIFT_RELAY_RECV},
    .radix = {0, 5},
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_allreduce_exchange_bruck = {
    .collective = IBSHIFT_ALLREDUCE,
    .name = "exchange_bruck",
    .doc = "every rank reduces one part of all vectors, then Bruck's allgather",
    .cost = "P-1 messages of n/P bytes, P-1 reductions of n/P, log_6 P rounds",
    .rounds = rounds,
    .emit = emit,
    .pieces = ibshift_relay_pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
