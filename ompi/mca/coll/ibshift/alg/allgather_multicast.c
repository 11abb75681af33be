/*
 * Each rank sends its block to all others at once, by multicast. Without a group it is modified_ring, whose messages
 * these are in other rounds: first all receives, so that datagrams find them posted, then all sends.
 */
#include "plan/alg_emit.h"

enum { PEERS = IBSHIFT_ROUND_STEPS - 1 }; /* of a round, which may copy besides */

static uint32_t rounds_of_peers(const struct ibshift_plan *plan)
{
    return plan->ranks > 1 ? (plan->ranks - 1 + PEERS - 1) / PEERS : 1;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return 2 * rounds_of_peers(plan);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t each = rounds_of_peers(plan), first = round % each * PEERS + 1, end = first + PEERS;
    struct ibshift_step *step = out;

    end = end < plan->ranks ? end : plan->ranks;
    for (uint32_t i = first; i < end; i++) {
        uint32_t from = emit_sub(rank, i, plan->ranks);

        step = round < each ? emit_recv(step, from, emit_blocks(IBSHIFT_RECV, from, 1), 0, 0, 0)
                            : emit_send(step, emit_add(rank, i, plan->ranks),
                                        emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0);
    }
    step = emit_cast(out, step);
    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allgather_multicast = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "multicast",
    .doc = "each rank sends its block to all at once",
    .cost = "a datagram of m bytes from each rank",
    .flags = IBSHIFT_ALG_IN_PLACE | IBSHIFT_ALG_MULTICAST,
    .rounds = rounds,
    .emit = emit,
};
