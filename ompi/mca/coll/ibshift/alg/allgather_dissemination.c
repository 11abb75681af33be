/*
 * Dissemination (Benson, Chu, Huang, Caglar 2003): in round i a rank sends its 2^i newest blocks
 * 2^i to the right, every block at its final place; a range that passes the end goes in two parts.
 * The last round sends only what is missing.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks > 1 ? emit_digits(plan->ranks, 2) : 1;
}

/* The `count` blocks that end with block `last`, going down and around. */
static struct ibshift_step *emit_blocks_until(struct ibshift_step *step, uint32_t ranks,
                                              uint32_t peer, uint32_t last, uint32_t count,
                                              uint32_t round, bool sends)
{
    uint32_t first = emit_sub(last, count - 1, ranks),
             head = count < ranks - first ? count : ranks - first;

    for (uint8_t part = 0; part < (head < count ? 2 : 1); part++) {
        struct emit_range range = part == 0 ? emit_blocks(IBSHIFT_RECV, first, head)
                                            : emit_blocks(IBSHIFT_RECV, 0, count - head);

        step = sends ? emit_send(step, peer, range, round, round)
                     : emit_recv(step, peer, range, round, 0, 0);
        step = emit_part(step, part);
    }
    return step;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, hop = UINT32_C(1) << round, from, count;
    struct ibshift_step *step = out;

    if (round == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    if (ranks == 1) {
        return 1;
    }
    from = emit_sub(rank, hop, ranks);
    count = hop < ranks - hop ? hop : ranks - hop;
    step = emit_blocks_until(step, ranks, from, from, count, round, false);
    if (round == 0) {
        step = emit_send(step, emit_add(rank, 1, ranks), emit_blocks(IBSHIFT_SEND, 0, 1), 0, 0);
    } else {
        step = emit_blocks_until(step, ranks, emit_add(rank, hop, ranks), rank, count, round, true);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_allgather_dissemination = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "dissemination",
    .doc = "one partner per round at doubling distance, blocks at their final places",
    .cost = "log2 P rounds, 1 or 2 messages per round, (P-1)m bytes, no copying",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
};
