/* How many messages a rank posts (or takes in) in a row: the n of o_s(n) and o_r(n).
 *
 * Messages in a row belong together when they are of one round as the literature draws it (one tag)
 * or of one size, and nothing that the rank does between them waits for more receives than the
 * first did. So the sends of a linear scatter or of a modified ring are one burst, those of a tree
 * one burst a round, and those of a ring are alone. It is a property of the plan, not of the
 * timing. */
#ifndef IBSHIFT_CHOOSE_PRICE_BURST_H
#define IBSHIFT_CHOOSE_PRICE_BURST_H

#include "choose/param.h"
#include "plan/alg.h"

/* Messages in a row: those that are still to come, of how many. All zero at first. */
struct ibshift_burst {
    uint32_t left, length;
};

struct ibshift_burst_place {
    int kind; /* of a step: a send or a receive */
    uint32_t rank, round, index;
};

/* What the next message of the burst, or of a new one that begins there, costs its rank's processor
 * beside its bytes. */
double ibshift_burst_overhead(struct ibshift_burst *burst, const struct ibshift_model *model,
                              const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                              const struct ibshift_burst_place *place);

#endif
