/*
 * Each rank folds one piece of all vectors, and an n-way tree gathers them: exchange, without P
 * messages to the root at once. Cost: P - 1 messages of n / P bytes, P - 1 reductions, ceil(log_6 P)
 * rounds. Any P, any root, any operator.
 */
#include "plan/relay.h"

extern const struct ibshift_alg ibshift_alg_reduce_scatter_linear;
extern const struct ibshift_alg ibshift_alg_gather_nway;

static const struct ibshift_relay relay = {
    .alg = {&ibshift_alg_reduce_scatter_linear, &ibshift_alg_gather_nway},
    .send = {IBSHIFT_RELAY_SEND, IBSHIFT_RELAY_RESULT},
    .recv = {IBSHIFT_RELAY_RESULT, IBSHIFT_RELAY_RECV},
    .radix = {0, 5},
};

IBSHIFT_RELAYED(relay)

const struct ibshift_alg ibshift_alg_reduce_exchange_gather = {
    .collective = IBSHIFT_REDUCE,
    .name = "exchange_gather",
    .doc = "every rank reduces one part of all vectors, then an n-way gather",
    .cost = "P-1 messages of n/P bytes, P-1 reductions of n/P, log_6 P rounds",
    .rounds = rounds,
    .emit = emit,
    .pieces = ibshift_relay_pieces,
    .tmp = tmp,
    .tmp_block = tmp_block,
};
