/*
 * Sparbit (Loch, Koslovski 2021): every block goes down a binomial tree of its own, the largest
 * distance first, so that the many blocks of the late rounds travel to near ranks. At distance d a
 * rank has the blocks rank - j 2d and sends those to rank + d that do not come around; they are
 * packed in TMP.
 */
#include "plan/alg_emit.h"

/* Blocks that travel at a distance: j with j 2d + d < P. */
static uint32_t travelling(uint32_t ranks, uint32_t distance)
{
    return (ranks + distance - 1) / (2 * distance);
}

/* Between TMP and the blocks first, first - stride, ... which wrap once at most. */
static struct ibshift_step *emit_pack(struct ibshift_step *step, uint32_t ranks, uint32_t first,
                                      uint32_t distance, uint32_t round, bool packs)
{
    uint32_t stride = 2 * distance, count = travelling(ranks, distance), done = 0;
    uint32_t tmp = packs ? 0 : ranks / 2,
             part = first / stride + 1 < count ? first / stride + 1 : count;

    while (done < count) {
        step = packs ? emit_copy(step, emit_blocks(IBSHIFT_TMP, tmp + done, part), IBSHIFT_RECV,
                                 first, round, round)
                     : emit_copy(step, emit_blocks(IBSHIFT_RECV, first, part), IBSHIFT_TMP,
                                 tmp + done, round, 0);
        step[-1].strided = packs ? IBSHIFT_STRIDED_SOURCE : IBSHIFT_STRIDED_TARGET;
        step[-1].run = 1;
        step[-1].stride = -(int32_t)stride;
        done += part;
        first += ranks - part * stride;
        part = count - done;
    }
    return step;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return 2 * emit_digits(plan->ranks, 2) + 1;
}

/* Round 2 l: unpack level l - 1, pack level l; round 2 l + 1: the message of level l. */
static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, level = round / 2, all = emit_digits(ranks, 2);
    uint32_t distance = level < all ? UINT32_C(1) << (all - 1 - level) : 0,
             last = level > 0 ? UINT32_C(1) << (all - level) : 0;
    struct ibshift_step *step = out;

    if (round % 2 == 1) {
        uint32_t count = travelling(ranks, distance);

        step = emit_recv(step, emit_sub(rank, distance, ranks),
                         emit_blocks(IBSHIFT_TMP, ranks / 2, count), level, round, 0);
        step = emit_send(step, emit_add(rank, distance, ranks), emit_blocks(IBSHIFT_TMP, 0, count),
                         level, round);
        return (uint32_t)(step - out);
    }
    step = round == 0 ? emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0)
                      : emit_pack(step, ranks, emit_sub(rank, last, ranks), last, round, false);
    step = level < all ? emit_pack(step, ranks, rank, distance, round, true) : step;
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->ranks / 2 * 2;
}

const struct ibshift_alg ibshift_alg_allgather_sparbit = {
    .collective = IBSHIFT_ALLGATHER,
    .name = "sparbit",
    .doc = "largest distance first, so that most bytes travel to near ranks",
    .cost = "log2 P rounds, 1 message per round, (P-1)m bytes, 2P m copied",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
