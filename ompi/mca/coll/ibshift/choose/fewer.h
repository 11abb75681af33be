/* A price's request among fewer ranks, which have as much to do for each piece of a vector. */
#ifndef IBSHIFT_CHOOSE_FEWER_H
#define IBSHIFT_CHOOSE_FEWER_H

#include "choose/price.h"
#include "plan/nodes.h"

/* In fewer segments of the same size; and all ranks of some hosts, who share among themselves what they share in the whole job,
 * where ranks share hosts. */
struct ibshift_fewer {
    struct ibshift_price_request request;
    struct ibshift_plan plan;
    struct ibshift_nodes nodes;
    struct ibshift_crowd crowd;
    uint32_t *memory; /* of nodes and crowd; NULL: nothing is to be freed */
};

/* There are several hosts, some with several ranks, and each is one of the plan's nodes. Of a single host, some of its
 * ranks are taken. */
static inline bool ibshift_fewer_has_hosts(const struct ibshift_price_request *request)
{
    const struct ibshift_nodes *nodes = request->plan->nodes;

    return nodes != NULL && nodes->nodes > 1 && nodes->most > 1 && request->crowd != NULL &&
           request->crowd->hosts == nodes->nodes;
}

/* So many hosts, or of ranks with one each. lacks_one: all but one of these. 0, -ENOMEM, or -ENOTSUP; only if 0 it is to be freed. */
int ibshift_fewer_units(const struct ibshift_price_request *request, uint32_t units, bool lacks_one,
                        uint32_t segments, struct ibshift_fewer *fewer);
/* The first ranks, wherever they are; it need not be freed. 0 or -ENOTSUP. */
int ibshift_fewer_ranks(const struct ibshift_price_request *request, uint32_t ranks,
                        struct ibshift_fewer *fewer);
void ibshift_fewer_free(struct ibshift_fewer *fewer);

/* Pieces of a vector are alike and none is empty: who has which of few bytes depends on the number of ranks. */
uint64_t ibshift_fewer_filled(const struct ibshift_price_request *request, uint64_t bytes);

#endif
