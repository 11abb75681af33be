/*
 * k-nomial tree over ranks counted from the root, base b = k + 1: the parent of v is v without its
 * lowest digit that is not zero; children get one more digit below that one, largest subtrees
 * first. Cost: ceil(log_{k+1} P) rounds, at most k messages a round, n bytes each. Any P, any root.
 */
#include "alg/alg_emit.h"

struct seat {
    uint32_t place; /* value of v's lowest digit that is not zero; for the root, of the first digit
                       beyond P */
    uint32_t below; /* digits below it */
    uint32_t total; /* digits of P - 1 */
};

static struct seat seat_of(uint32_t v, uint32_t ranks, uint32_t base)
{
    struct seat seat = {1, 0, 0};
    uint32_t place = 1;

    while (seat.place < ranks && v % (seat.place * base) == 0) {
        seat.place *= base;
        seat.below++;
    }
    for (seat.total = seat.below, place = seat.place; place < ranks; place *= base) {
        seat.total++;
    }
    return seat;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t v = emit_sub(rank, plan->root, plan->ranks);

    return (v != 0) + seat_of(v, plan->ranks, plan->radix + 1).below;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t ranks = plan->ranks, base = plan->radix + 1, v = emit_sub(rank, plan->root, ranks);
    struct seat seat = seat_of(v, ranks, base);
    uint32_t sends = round - (v != 0), tag = seat.total - seat.below + sends;
    struct emit_range all = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct ibshift_step *step = out;

    if (v != 0 && round == 0) {
        step = emit_recv(step, emit_add(v - v % (seat.place * base), plan->root, ranks), all, tag,
                         0, 0);
        return (uint32_t)(step - out);
    }
    for (uint32_t i = 0; i <= sends; i++) {
        seat.place /= base;
    }
    for (uint32_t j = 1, child = v + seat.place; j < base && child < ranks;
         j++, child += seat.place) {
        step = emit_send(step, emit_add(child, plan->root, ranks), all, tag, v != 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_bcast_knomial = {
    .collective = IBSHIFT_BCAST,
    .name = "knomial",
    .doc = "tree in which every rank that has the data tells k others a round",
    .cost = "log_{k+1} P rounds, k messages a round, n bytes each",
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
};
