/* The messages of any algorithm as flows, grouped by their tag: the round as the literature draws
 * it. Each message counts once, whatever its size. */
#ifndef IBSHIFT_FABRIC_PATHS_CONTEND_PLAN_H
#define IBSHIFT_FABRIC_PATHS_CONTEND_PLAN_H

#include "plan/alg.h"
#include "fabric/paths/contend.h"

#define IBSHIFT_PLAN_FLOWS (1u << 25) /* at most */

struct ibshift_plan_flows {
    struct ibshift_stage_source source;
    struct ibshift_flow *flows;
    size_t *start;
};

/* member_of[rank of the plan]. The plan has passed ibshift_alg_check(). 0, -ENOMEM, -E2BIG. */
int ibshift_plan_flows_open(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            const uint32_t *member_of, struct ibshift_plan_flows *flows);
void ibshift_plan_flows_close(struct ibshift_plan_flows *flows);

#endif
