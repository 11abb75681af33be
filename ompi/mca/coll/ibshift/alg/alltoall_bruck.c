/*
 * Bruck all-to-all, base b = k + 1 (Bruck, Ho, Kipnis, Upfal, Weathersby 1997). TMP has three areas
 * of P blocks.
 * - The first: block i is for rank + i; what is kept there in the end came from rank - i.
 * - The second, packed for sending: for each digit d > 0 at the place in turn, the blocks i that
 *   have it there.
 * - The third: the same as received.
 *
 * For each place b^t: pack, k messages to the ranks d b^t to the right, unpack. Local steps of two
 * places share a round.
 *
 * Cost: ceil(log_b P) rounds, k messages per round, P m / b bytes each, 2 P m (1 + k/b log_b P)
 * copied. Any P.
 */
#include "plan/alg_emit.h"

/* The blocks that have digit d at one place. */
struct bundle {
    uint32_t place;
    uint32_t hop; /* d * place: the first such block, and how far it goes */
    uint32_t count;
    uint32_t offset; /* in the packed areas */
};

static uint32_t places(const struct ibshift_plan *plan)
{
    return emit_digits(plan->ranks, plan->radix + 1);
}

static uint32_t place_value(const struct ibshift_plan *plan, uint32_t index)
{
    return emit_power(plan->radix + 1, index);
}

static struct bundle first_bundle(uint32_t place)
{
    return (struct bundle){.place = place};
}

/* The next digit's blocks; false when no block has that digit. */
static bool next_bundle(const struct ibshift_plan *plan, struct bundle *bundle)
{
    uint32_t cycle = bundle->place * (plan->radix + 1), rest;

    bundle->offset += bundle->count;
    bundle->hop += bundle->place;
    if (bundle->hop >= plan->ranks || bundle->hop >= cycle) {
        return false;
    }
    rest = plan->ranks % cycle;
    bundle->count = plan->ranks / cycle * bundle->place;
    if (rest > bundle->hop) {
        bundle->count += rest - bundle->hop < bundle->place ? rest - bundle->hop : bundle->place;
    }
    return true;
}

/* Between area 0 and a packed one. */
static struct ibshift_step *emit_pack(const struct ibshift_plan *plan, struct ibshift_step *step,
                                      struct bundle bundle, bool packs, uint32_t round)
{
    uint32_t ranks = plan->ranks, packed = bundle.offset + (packs ? ranks : 2 * ranks);

    step = emit_copy(step, emit_blocks(IBSHIFT_TMP, packs ? packed : bundle.hop, bundle.count),
                     IBSHIFT_TMP, packs ? bundle.hop : packed, round, packs ? round : 0);
    step[-1].strided = packs ? IBSHIFT_STRIDED_SOURCE : IBSHIFT_STRIDED_TARGET;
    step[-1].run = bundle.place;
    step[-1].stride = (int32_t)(bundle.place * (plan->radix + 1));
    return step;
}

static struct ibshift_step *emit_reversed(struct ibshift_step *step, uint32_t first, uint32_t from,
                                          uint32_t count, uint32_t round)
{
    if (count > 0) {
        step =
            emit_copy(step, emit_blocks(IBSHIFT_RECV, first, count), IBSHIFT_TMP, from, round, 0);
        step[-1].strided = IBSHIFT_STRIDED_TARGET;
        step[-1].run = 1;
        step[-1].stride = -1;
    }
    return step;
}

/* Round 2 t: unpack place t - 1, pack place t; before the first the rotation, after the last the
 * way to RECV. */
static uint32_t emit_local_round(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                                 struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, turn = round / 2;
    struct bundle bundle = first_bundle(place_value(plan, turn == 0 ? 0 : turn - 1));
    struct ibshift_step *step = out;

    if (turn == 0) {
        step = emit_copy(step, emit_blocks(IBSHIFT_TMP, 0, ranks - rank), IBSHIFT_SEND, rank, 0, 0);
        step = rank > 0 ? emit_copy(step, emit_blocks(IBSHIFT_TMP, ranks - rank, rank),
                                    IBSHIFT_SEND, 0, 0, 0)
                        : step;
    } else {
        while (next_bundle(plan, &bundle)) {
            step = emit_pack(plan, step, bundle, false, round);
        }
    }
    if (turn == places(plan)) {
        step = emit_reversed(step, rank, 0, rank + 1, round);
        return (uint32_t)(emit_reversed(step, ranks - 1, rank + 1, ranks - rank - 1, round) - out);
    }
    bundle = first_bundle(place_value(plan, turn));
    while (next_bundle(plan, &bundle)) {
        step = emit_pack(plan, step, bundle, true, round);
    }
    return (uint32_t)(step - out);
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return 2 * places(plan) + 1;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks;
    struct bundle bundle;
    struct ibshift_step *step = out;

    if (round % 2 == 0) {
        return emit_local_round(plan, rank, round, out);
    }
    bundle = first_bundle(place_value(plan, round / 2));
    while (next_bundle(plan, &bundle)) {
        step = emit_recv(step, emit_sub(rank, bundle.hop, ranks),
                         emit_blocks(IBSHIFT_TMP, 2 * ranks + bundle.offset, bundle.count),
                         round / 2, round, 0);
        step = emit_send(step, emit_add(rank, bundle.hop, ranks),
                         emit_blocks(IBSHIFT_TMP, ranks + bundle.offset, bundle.count), round / 2,
                         round);
    }
    return (uint32_t)(step - out);
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return 3 * plan->ranks;
}

const struct ibshift_alg ibshift_alg_alltoall_bruck = {
    .collective = IBSHIFT_ALLTOALL,
    .name = "bruck",
    .doc = "blocks travel digit by digit, k messages per round",
    .cost = "log_{k+1} P rounds, k messages per round of P m/(k+1) bytes",
    .flags = IBSHIFT_ALG_IN_PLACE,
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
    .tmp = tmp,
};
