/*
 * The ranks of a job on the hosts of a fabric, and the shift over an order of hosts as the ranks
 * see it. Read-only once built.
 */
#ifndef IBSHIFT_FABRIC_TABLE_PLACEMENT_H
#define IBSHIFT_FABRIC_TABLE_PLACEMENT_H

#include "fabric/paths/paths.h"
#include "plan/order.h"

struct ibshift_placement {
    const struct ibshift_fabric *fabric;
    struct ibshift_paths *paths; /* among the hosts; NULL until ibshift_placement_routes() */
    uint32_t hosts;              /* that carry ranks: the members, numbered as ranks come to them */
    uint32_t *host;              /* member -> host of the fabric */
    uint32_t ranks;
    uint32_t slots;      /* ranks on the fullest host */
    uint32_t *member_of; /* rank -> member of paths */
    uint32_t *member_at; /* host of the fabric -> member, or IBSHIFT_NO_HOST */
    uint32_t *start;     /* member -> its ranks are rank_on[start[m] .. start[m + 1]), ascending */
    uint32_t *rank_on;
};

/* host_of[rank]: index of a host of the fabric. 0, -EINVAL, -ENOMEM. */
int ibshift_placement_open(const struct ibshift_fabric *f, const uint32_t *host_of, uint32_t ranks,
                           struct ibshift_placement **placement, struct ibshift_error *err);
/* Follows the routes among the hosts, to all LIDs of a host or to its first alone. 0, or what
 * ibshift_paths_build() says. */
int ibshift_placement_routes(struct ibshift_placement *placement, bool all_lids,
                             struct ibshift_error *err);
void ibshift_placement_close(struct ibshift_placement *placement);

/*
 * The ranks along hosts[count]; hosts without ranks and IBSHIFT_NO_HOST become place keepers, or are
 * left out if keepers is false. -ENOENT: a host with ranks is missing there.
 */
int ibshift_placement_along(const struct ibshift_placement *placement, const uint32_t *hosts,
                            uint32_t count, bool keepers, struct ibshift_order *shift,
                            struct ibshift_error *err);
/* One rank a place, in their own order: what a library does that knows no fabric. */
int ibshift_placement_by_rank(const struct ibshift_placement *placement,
                              struct ibshift_order *shift, struct ibshift_error *err);
void ibshift_order_free(struct ibshift_order *shift);

/* The hosts' order that a compiled fabric carries, or the one found in its tables, with place
 * keepers. *order is the caller's to free. */
int ibshift_placement_order(const struct ibshift_fabric *f, uint32_t **order, uint32_t *count,
                            struct ibshift_error *err);

#endif
