/*
 * What it costs that sizes are told before a plan by node (exec/mixed.h): words within the nodes, then between their leaders, and
 * what a leader does for each block that it holds, which the prices of plans leave out.
 */
#include <errno.h>
#include <stddef.h>

#include "choose/glance.h"
#include "choose/price.h"
#include "plan/nodes.h"
#include "plan/teams.h"

enum { WORD = 4 };

/* us: its place is found, in 65 instructions (counted, also where nodes differ in size), of which some two go in a ns. */
#define A_BLOCK 0.03

/* Of linear words to one rank, or to all. */
static int add(struct ibshift_price_request *request, bool is_alltoall, struct ibshift_price *sum)
{
    struct ibshift_price price;
    int rc;

    request->alg = ibshift_alg_find(is_alltoall ? IBSHIFT_ALLTOALL : IBSHIFT_GATHER, "linear");
    rc = request->plan->ranks < 2 ? -ERANGE : ibshift_glance(request, &price);
    if (rc != 0) {
        return rc == -ENOMEM ? rc : 0;
    }
    sum->last += price.last;
    sum->messages += price.messages;
    sum->hops += price.hops;
    return 0;
}

int ibshift_price_telling(const struct ibshift_price_request *main, struct ibshift_price *price)
{
    const struct ibshift_plan *plan = main->plan;
    bool is_alltoall = main->alg->collective == IBSHIFT_ALLTOALL;
    uint32_t ranks = plan->nodes != NULL ? plan->nodes->most : 1,
             leaders = ibshift_teams_count(plan);
    uint32_t fullest = ibshift_nodes_rank(plan, ibshift_nodes_fullest(plan), 0);
    struct ibshift_plan node = {.ranks = ranks}, between = {.ranks = ibshift_nodes_count(plan)};
    struct ibshift_price_request request = {.plan = &node,
                                            .model = main->near != NULL ? main->near : main->model,
                                            .element = 1,
                                            .window = main->window,
                                            .limit = main->limit,
                                            .space = main->space};
    int rc;

    request.bytes = WORD * (!is_alltoall  ? 1
                            : leaders > 1 ? 3 * (uint64_t)plan->ranks / ranks
                                          : 2 * (uint64_t)plan->ranks);
    rc = add(&request, is_alltoall && leaders > 1, price);
    request.plan = &between;
    request.model = main->model;
    request.bytes = WORD * (uint64_t)ranks * (is_alltoall ? (ranks + leaders - 1) / leaders : 1);
    rc = rc == 0 ? add(&request, is_alltoall, price) : rc;
    price->last += A_BLOCK * main->alg->tmp(plan, fullest);
    return rc;
}
