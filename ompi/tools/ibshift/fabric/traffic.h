/* What a plan's messages carry over which cables of a fabric. */
#ifndef IBSHIFT_FABRIC_TRAFFIC_H
#define IBSHIFT_FABRIC_TRAFFIC_H

#include "fabric/cmd_job.h"

enum {
    FABRIC_WAYS = 64, /* cables of a route; the last is for all longer ones */
    FABRIC_TIERS = 8  /* the last is for all higher ones */
};

/*
 * Blocks, or vectors. Tier 0 has the hosts' cables, tier n those from a switch that is n switches from the nearest host to one that is
 * as far or farther. Of cables between equals those that close no triangle with others are a tier of their own where others do:
 * between the groups of a dragonfly.
 */
struct fabric_traffic {
    const char *unit;              /* in words */
    double by_length[FABRIC_WAYS]; /* of messages that pass so many cables */
    double by_tier[FABRIC_TIERS];  /* times the cables of that tier that they pass */
    unsigned tiers;                /* of the fabric */
};

/* [port]: the tier of its cable; the job's. */
uint8_t *fabric_tiers(struct fabric_job *job);
/* Of ranks on these members. */
void fabric_traffic_count(const struct fabric_job *job, const uint8_t *tier,
                          const uint32_t *members, const struct ibshift_alg *alg,
                          const struct ibshift_plan *plan, struct fabric_traffic *traffic);

#endif
