/*
 * Shift over a node order (Zahavi et al. 2009): in every stage all nodes send to the node so many
 * places on, so that routes which are free of contention for shifts stay so. With several slots a
 * node, all distances have a turn for each; missing nodes and ranks keep their places, and their
 * turns pass unused. Round = stage (plan/order.h).
 */
#include "plan/alg_emit.h"
#include "plan/order.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->order != NULL ? plan->order->places * plan->order->slots : plan->ranks;
}

/* The rank in the slot `distance` places and `turn` slots on (or back). */
static uint32_t rank_from(const struct ibshift_order *order, uint32_t at, uint32_t distance,
                          uint32_t turn, bool back)
{
    uint32_t place = at / order->slots, slot = at % order->slots;

    place =
        back ? emit_sub(place, distance, order->places) : emit_add(place, distance, order->places);
    slot = back ? emit_sub(slot, turn, order->slots) : emit_add(slot, turn, order->slots);
    return order->rank_at[place * order->slots + slot];
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    const struct ibshift_order *order = plan->order;
    uint32_t from, to;
    struct ibshift_step *step = out;

    if (round == 0) {
        emit_copy(out, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, rank, 0, 0);
        return 1;
    }
    if (order != NULL) {
        uint32_t at = order->slot_of[rank], turn = round / order->places;
        uint32_t distance =
            plan->in_sequence ? round % order->places : ibshift_order_distance(order, round);

        from = rank_from(order, at, distance, turn, true);
        to = rank_from(order, at, distance, turn, false);
    } else {
        from = emit_sub(rank, round, plan->ranks);
        to = emit_add(rank, round, plan->ranks);
    }
    if (from != IBSHIFT_NO_RANK) {
        step = emit_recv(step, from, emit_blocks(IBSHIFT_RECV, from, 1), round, 0, 0);
    }
    if (to != IBSHIFT_NO_RANK) {
        step = emit_send(step, to, emit_blocks(IBSHIFT_SEND, to, 1), round, 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_alltoall_shift = {
    .collective = IBSHIFT_ALLTOALL,
    .name = "shift",
    .doc = "in stage s, every node sends to the node s places further in the routing order",
    .cost = "places x slots stages, P-1 messages of m bytes",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_ORDER | IBSHIFT_ALG_FREE,
    .rounds = rounds,
    .emit = emit,
};
