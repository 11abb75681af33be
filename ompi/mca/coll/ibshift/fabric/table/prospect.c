/* Which stages an all-to-all needs at the least. Figures as in schedule.c. */
#include "fabric/table/prospect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "fabric/paths/contend.h"
#include "fabric/table/packing.h"

#define AS_CHEAP 1.000001 /* the same price, but for the rounding of floats */

/* A cost that is not told apart any more counts as the dearest one. */
static void add_kind(struct ibshift_prospects *s, double cost, double flows)
{
    uint32_t k = 0;

    while (k < s->kind_count && k < IBSHIFT_LINK_KINDS - 1 &&
           fabs(s->kinds[k].cost - cost) > 1e-3 * cost) {
        k++;
    }
    if (k == s->kind_count) {
        s->kinds[s->kind_count++] = (struct ibshift_link_kind){cost, flows};
    }
    s->kinds[k].cost = cost > s->kinds[k].cost ? cost : s->kinds[k].cost;
    s->kinds[k].flows = flows > s->kinds[k].flows ? flows : s->kinds[k].flows;
}

int ibshift_prospects_open(const struct ibshift_paths *paths, uint32_t ranks,
                           const uint32_t *member_of, struct ibshift_prospects *s)
{
    double *loads;
    int status = ibshift_alltoall_loads(paths, ranks, member_of, &loads);

    for (uint32_t i = 0; status == 0 && i < paths->links + paths->hosts; i++) {
        double cost = ibshift_contention_cost(paths, i);

        add_kind(s, cost, loads[i]);
        s->bound = fmax(s->bound, cost * loads[i]);
    }
    if (status == 0) {
        free(loads);
    }
    return status;
}

/* Rounds up the stages that so many flows need. */
static double stages_for(double flows, uint32_t capacity)
{
    return flows > 0 ? ceil(flows / capacity - 1e-6) : 0;
}

/* Stages at this cost, and dear ones for flows that do not fit into these. */
static struct ibshift_prospect prospect_at(const struct ibshift_prospects *s, double cheap)
{
    double dear = cheap, many[2] = {0, 0};

    for (uint32_t k = 0; k < s->kind_count; k++) {
        dear = fmax(dear, s->kinds[k].cost);
    }
    for (uint32_t k = 0; k < s->kind_count; k++) {
        if (ibshift_packing_capacity(cheap, s->kinds[k].cost) == 0) {
            many[1] = fmax(many[1], stages_for(s->kinds[k].flows,
                                               ibshift_packing_capacity(dear, s->kinds[k].cost)));
        }
    }
    for (uint32_t k = 0; k < s->kind_count; k++) {
        uint32_t capacity = ibshift_packing_capacity(cheap, s->kinds[k].cost);
        double in_dear = many[1] * ibshift_packing_capacity(dear, s->kinds[k].cost);

        many[0] =
            fmax(many[0], capacity > 0 ? stages_for(s->kinds[k].flows - in_dear, capacity) : 0);
    }
    many[0] = fmax(many[0], (s->sends > s->least ? s->sends : s->least) - many[1]);
    return (struct ibshift_prospect){{(float)cheap, (float)dear},
                                     {(uint32_t)many[0], (uint32_t)many[1]},
                                     many[0] * cheap + many[1] * dear};
}

/* Is a better than b? Among those that cost the same: the fewest stages in which a rank's own are
 * at most half of them, for then the search is easy; else the most. Always the fewest cost up to
 * 7 % more, always the most up to 3 %. */
static bool is_better(const struct ibshift_prospects *s, const struct ibshift_prospect *a,
                      const struct ibshift_prospect *b, double least)
{
    uint32_t many = a->stages[0] + a->stages[1], others = b->stages[0] + b->stages[1];
    bool roomy = many >= 2 * s->sends, other_roomy = others >= 2 * s->sends;

    if (a->price > AS_CHEAP * least || b->price > AS_CHEAP * least) {
        return a->price < b->price;
    }
    return roomy && other_roomy ? many < others : many > others;
}

/* All costs in which some link's flows fit without a rest; twice, for the least price comes first.
 */
struct ibshift_prospect ibshift_prospect_find(const struct ibshift_prospects *s)
{
    struct ibshift_prospect best = {.price = INFINITY};
    double least = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < s->kind_count; k++) {
            for (uint32_t flows = 1; flows <= IBSHIFT_PACKING_SLOTS; flows++) {
                struct ibshift_prospect p = prospect_at(s, flows * s->kinds[k].cost);

                if (is_better(s, &p, &best, least)) {
                    best = p;
                }
                if (p.stages[1] == 0 && p.cost[0] * s->sends > AS_CHEAP * best.price) {
                    break;
                }
            }
        }
        least = best.price;
    }
    return best;
}
