/*
 * n-way dissemination (Hensgen, Finkel, Manber 1988; Hoefler et al. 2006 for n > 1): in round r a
 * rank tells the ranks j (k+1)^r to its right, 1 <= j <= k.
 */
#include "plan/alg_emit.h"

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return emit_digits(plan->ranks, plan->radix + 1);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct ibshift_step *step = out;
    uint32_t distance = emit_power(plan->radix + 1, round);

    for (uint32_t j = 1, hop = distance; j <= plan->radix && hop < plan->ranks;
         j++, hop += distance) {
        step = emit_recv(step, emit_sub(rank, hop, plan->ranks), emit_blocks(IBSHIFT_RECV, 0, 0),
                         round, 0, 0);
        step = emit_send(step, emit_add(rank, hop, plan->ranks), emit_blocks(IBSHIFT_SEND, 0, 0),
                         round, round);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_barrier_dissemination = {
    .collective = IBSHIFT_BARRIER,
    .name = "dissemination",
    .doc = "in each round a rank signals k ranks at growing distances",
    .cost = "log_{k+1} P rounds, k messages per round, no bytes",
    .radix_max = IBSHIFT_RADIX_MAX,
    .rounds = rounds,
    .emit = emit,
};
