/*
 * Stages of an all-to-all whose blocks differ, on the routes of a fabric: which pair goes when. The pairs that last longest come
 * first, each in the first stage in which both ranks are free and no link on the way comes to carry more than the stage's longest
 * block takes. So long blocks go beside long ones, and what a link cannot carry meanwhile goes in another stage.
 *
 * Times are bytes on the fastest host's cable. Deterministic: the same matrix, routes and ranks give the same table everywhere.
 * P^2 pairs, each looks at 64 stages at a time, and at the links of its route in those where both ranks are free.
 */
#ifndef IBSHIFT_FABRIC_WEIGHTED_H
#define IBSHIFT_FABRIC_WEIGHTED_H

#include "fabric/paths/paths.h"
#include "plan/order.h"

struct ibshift_weighted_job {
    const struct ibshift_paths *paths; /* to the first LID of each host */
    uint32_t ranks;
    const uint32_t *member_of;
    const uint64_t *bytes; /* [from * ranks + to]; below 2^53 in all */
    size_t memory;         /* that the search may take */
};

/*
 * The link that is busy longest, whatever the order: no plan ends sooner. link: a shared link, then each member's cable out of it,
 * then into it, as in a contention.
 */
struct ibshift_weighted_bound {
    double time;
    uint32_t link;
};

/* Every other rank appears once in a rank's row, also those that get nothing; ranks of one host in the last stages. */
struct ibshift_weighted {
    struct ibshift_stages table; /* all rows; to and from are owned here */
    uint32_t *to, *from;
    double cost; /* of all stages, one after the other: each takes as long as its dearest link */
};

/* 0 or -ENOMEM. */
int ibshift_weighted_bound(const struct ibshift_weighted_job *job,
                           struct ibshift_weighted_bound *bound);

/* Whether the pair's block takes that link of a bound: the certificate is the sum of all that do. */
bool ibshift_weighted_takes(const struct ibshift_weighted_job *job, uint32_t from, uint32_t to,
                            uint32_t link);

/* What the stages of any table cost: one after the other, each as long as its dearest link. 0 or -ENOMEM. */
int ibshift_weighted_cost(const struct ibshift_weighted_job *job,
                          const struct ibshift_stages *table, double *cost);

/* 0, -E2BIG (more than the memory would be taken), -ENOMEM. */
int ibshift_weighted_make(const struct ibshift_weighted_job *job,
                          struct ibshift_weighted *weighted);
void ibshift_weighted_free(struct ibshift_weighted *weighted);

#endif
