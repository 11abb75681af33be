/* Some hosts of a job with all their ranks, who share among themselves what they share in the whole job. */
#ifndef IBSHIFT_CHOOSE_HOSTS_H
#define IBSHIFT_CHOOSE_HOSTS_H

#include "choose/price.h"
#include "plan/nodes.h"

struct ibshift_hosts {
    uint32_t ranks, root;
    struct ibshift_nodes nodes;
    struct ibshift_crowd crowd;
    uint32_t *memory; /* NULL: nothing is to be freed */
};

/* There are several hosts, some with several ranks, and each is one of the plan's nodes. Of a single host, some of its
 * ranks are taken. */
static inline bool ibshift_hosts_are_shared(const struct ibshift_price_request *request)
{
    const struct ibshift_nodes *nodes = request->plan->nodes;

    return nodes != NULL && nodes->nodes > 1 && nodes->most > 1 && request->crowd != NULL &&
           request->crowd->hosts == nodes->nodes;
}

/* So many of them, two or more, at equal distances, with the root's and the fullest; their ranks are numbered in their order.
 * lacks_one: of those all but the one, not the root's, that has most nearly as many ranks as hosts have in the mean. 0 or -ENOMEM. */
int ibshift_hosts_take(const struct ibshift_price_request *request, uint32_t count, bool lacks_one,
                       struct ibshift_hosts *hosts);
void ibshift_hosts_free(struct ibshift_hosts *hosts);

#endif
