/*
 * The order of an all-to-all among the ranks of a placement: a shift in rank order, in routing
 * order, in routing order with place keepers, or a table of stages. The cheapest on the fabric's
 * routes, the simplest among equals. Where all hosts have several LIDs, a shift goes to those of one offset. Deterministic, but with an earlier table: then it depends on
 * which one that is, so on what ran before. A way costs what its stages cost one after the
 * other; a shift that takes its distances in steps is priced with as many stages at once as a host
 * has messages in flight, for single stages need not be free of contention where all that are under
 * way together are even: on a torus no order has such stages.
 */
#ifndef IBSHIFT_FABRIC_TABLE_ARRANGE_H
#define IBSHIFT_FABRIC_TABLE_ARRANGE_H

#include "fabric/table/placement.h"
#include "fabric/table/schedule.h"

enum ibshift_arrange_kind {
    IBSHIFT_ARRANGE_RANK,
    IBSHIFT_ARRANGE_ROUTING,
    IBSHIFT_ARRANGE_KEEPERS,
    IBSHIFT_ARRANGE_STEPS, /* in routing order; the step is searched */
    IBSHIFT_ARRANGE_TABLE,
    IBSHIFT_ARRANGE_KINDS
};

#define IBSHIFT_ARRANGE_ALL ((1u << IBSHIFT_ARRANGE_KINDS) - 1)
/* A table is not looked for when a shift costs at most so much of the bound. */
#define IBSHIFT_ARRANGE_ENOUGH 1.01
#define IBSHIFT_FIRST_HOSTS    512
#define IBSHIFT_FIRST_RANKS    2048
#define IBSHIFT_TABLE_MEMORY   ((size_t)256 << 20) /* that a table and its search may take */

struct ibshift_arrangement {
    enum ibshift_arrange_kind kind;
    struct ibshift_order shift;       /* of a shift, */
    uint32_t lid_offset;              /* and that of its messages, at all hosts the same */
    struct ibshift_schedule schedule; /* of a table */
    uint32_t stages;
    double cost, worst, bound;           /* as in a contention; worst: of a stage */
    double tried[IBSHIFT_ARRANGE_KINDS]; /* what each cost; 0: not tried */
    uint32_t together;                   /* stages at once in the cost of steps; 0: not tried */
    uint32_t busiest;                    /* link that sets the bound, as in a contention */
    double share;     /* of the links' rate that the routing leaves an all-to-all */
    bool has_circle;  /* of links, as ibshift_paths_circle() says */
    char reason[400]; /* one sentence, two where the routing is the limit */
};

/* order[count]: the fabric's hosts, as ibshift_placement_order() has them. kinds: bits of those
 * allowed. 0, -ENOMEM, -EDOM (a table alone is allowed, and too large). */
int ibshift_arrange(const struct ibshift_placement *placement, const uint32_t *order,
                    uint32_t count, unsigned kinds, struct ibshift_arrangement *arrangement,
                    struct ibshift_error *err);
/*
 * The shift that serves before a search, for every rank by itself: in routing order, or in rank
 * order where the routes make that cheaper. Beyond IBSHIFT_FIRST_HOSTS or IBSHIFT_FIRST_RANKS the
 * two are not compared, as each rank would take long: in routing order. The same on all ranks.
 * Errors: of ibshift_placement_along().
 */
int ibshift_arrange_first(struct ibshift_placement *placement, const uint32_t *order,
                          uint32_t count, struct ibshift_order *shift,
                          enum ibshift_arrange_kind *kind, struct ibshift_error *err);
/* What a shift costs, NULL: that in rank order, so many stages at once; of the contention the sums alone. threads as in
 * ibshift_contend(). 0 or -ENOMEM. */
int ibshift_arrange_price(const struct ibshift_placement *placement,
                          const struct ibshift_order *shift, uint32_t together, unsigned threads,
                          struct ibshift_contention *contention);

void ibshift_arrangement_free(struct ibshift_arrangement *arrangement);

const char *ibshift_arrange_name(enum ibshift_arrange_kind kind);
struct ibshift_stage_source
ibshift_arrangement_source(const struct ibshift_placement *placement,
                           const struct ibshift_arrangement *arrangement);

#endif
