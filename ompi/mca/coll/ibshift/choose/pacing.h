/* What the pace of all-to-alls is asked with (exec/pace/pace.h), and what its answer is for a price. It decides how an all-to-all
 * is priced, and by that which algorithm runs: nothing counts that one rank knows and another does not. */
#ifndef IBSHIFT_CHOOSE_PACING_H
#define IBSHIFT_CHOOSE_PACING_H

#include "choose/best.h"
#include "exec/pace/pace.h"

/* What a rank's fabric file says. Ranks may have different files. */
struct ibshift_pacing_fabric {
    uint32_t
        hosts; /* 0: the ranks do not go in an order of the same file, so the rest does not count */
    uint32_t ring; /* the longest of a torus; 0: it is none */
    uint64_t kib;  /* ns that 1024 bytes take; 0: it does not say */
};

/* The facts that come from the fabric and from the costs that the price is made of. */
void ibshift_pacing_add(struct ibshift_pace_facts *facts, const struct ibshift_model *model,
                        const struct ibshift_pacing_fabric *fabric);

/* How long messages go under the pace. */
struct ibshift_sending ibshift_pacing_sending(const struct ibshift_pace *pace);

/* Requests that rank 0 posts in an all-to-all whose steps wait for none; piece > 0. Of many ranks the price has a sample alone. */
unsigned long long ibshift_pacing_posts(const struct ibshift_question *question, uint32_t piece);

#endif
