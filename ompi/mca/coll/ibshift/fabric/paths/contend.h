/*
 * Flows per link, stage by stage: what an order, a schedule or a plan costs on the fabric's routes.
 * The cost of a stage is that of its dearest link: flows on it times the time of one flow (1 = one
 * message on the fastest host's cable). Static and exact; no time passes here.
 */
#ifndef IBSHIFT_FABRIC_PATHS_CONTEND_H
#define IBSHIFT_FABRIC_PATHS_CONTEND_H

#include "fabric/paths/paths.h"
#include "plan/alg.h"
#include "plan/order.h"

#define IBSHIFT_CONTEND_BINS 64 /* of the histogram; the last holds all above */

/* One message between two ranks' hosts. lid_offset: which of the destination's LIDs. */
struct ibshift_flow {
    uint32_t from, to;
    uint32_t lid_offset;
};

/*
 * A sequence of stages. flows() writes the flows of one stage between members of the set (at most
 * `most`) and returns their number; it is called from several threads.
 */
struct ibshift_stage_source {
    uint32_t stages;
    uint32_t most;
    uint32_t (*flows)(const struct ibshift_stage_source *source, uint32_t stage,
                      struct ibshift_flow *flows);
    const struct ibshift_order *order;
    const struct ibshift_stages *table;
    const uint8_t *lid_offsets; /* table: [rank * stages + stage], NULL: 0 */
    uint32_t lid_offset;        /* shift: that of all messages, below ibshift_paths_modes() */
    const uint32_t *member_of;  /* rank -> member of the set */
    uint32_t ranks;
    /* a plan's flows, grouped by stage: those of stage s are at [start[s], start[s + 1]) */
    const struct ibshift_flow *listed;
    const size_t *start;
};

/* The shift over an order, a schedule's table; ranks sit on members by member_of. */
struct ibshift_stage_source ibshift_source_shift(const struct ibshift_order *order, uint32_t ranks,
                                                 const uint32_t *member_of);
struct ibshift_stage_source ibshift_source_table(const struct ibshift_stages *table, uint32_t ranks,
                                                 const uint8_t *lid_offsets,
                                                 const uint32_t *member_of);

struct ibshift_contention {
    uint32_t stages; /* in which something flows over a cable */
    double worst;    /* the dearest stage */
    double sum;      /* over all stages: what the whole costs, T */
    double bound;    /* the dearest link's total over all stages: no order can cost less, LB */
    uint32_t histogram[IBSHIFT_CONTEND_BINS]; /* stages by their cost, rounded up */
    /* For each shared link, then each member's cable out of it, then into it: */
    uint32_t links;
    uint64_t *total;       /* flows over all stages */
    uint32_t *worst_flows; /* in one stage */
};

/*
 * together: stages that are under way at once (1: each ends before the next begins). They count as
 * one, whose cost is that of its dearest link's flows in all of them; at least 1 for each stage, as
 * a rank sends one message in it. threads 0: as many as there are cores. 0 or -ENOMEM.
 */
int ibshift_contend(const struct ibshift_paths *paths, const struct ibshift_stage_source *source,
                    uint32_t together, unsigned threads, struct ibshift_contention *result);
void ibshift_contention_free(struct ibshift_contention *result);

/* Time of one flow on link i of a contention, and its name. */
double ibshift_contention_cost(const struct ibshift_paths *paths, uint32_t i);
void ibshift_contention_name(const struct ibshift_paths *paths, uint32_t i, char *text,
                             size_t size);

/* Flows of an all-to-all among ranks that sit on members by member_of, for each link of a
 * contention, of those that have no way around it. *loads is the caller's to free. */
int ibshift_alltoall_loads(const struct ibshift_paths *paths, uint32_t ranks,
                           const uint32_t *member_of, double **loads);

/*
 * The bound of an all-to-all among ranks that sit on members by member_of, whatever its order and
 * whichever LIDs of the destinations it takes: the dearest link's total of the flows that have no
 * way around it. link: which one (as in a contention).
 */
int ibshift_alltoall_bound(const struct ibshift_paths *paths, uint32_t ranks,
                           const uint32_t *member_of, double *bound, uint32_t *link);

/* The messages of any algorithm as flows, grouped by their tag: the round as the literature draws
 * it. Each message counts once, whatever its size. */
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
