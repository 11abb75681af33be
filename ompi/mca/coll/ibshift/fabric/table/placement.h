/*
 * The ranks of a job on the hosts of a fabric, and the shift over an order of hosts as the ranks
 * see it. Read-only once built.
 */
#ifndef IBSHIFT_FABRIC_TABLE_PLACEMENT_H
#define IBSHIFT_FABRIC_TABLE_PLACEMENT_H

#include "fabric/paths/paths.h"
#include "plan/order.h"

typedef struct ibshift_placement {
    const ibshift_fabric_t *fabric;
    ibshift_paths_t *paths; /* among the hosts; NULL until ibshift_placement_routes() */
    uint32_t hosts;         /* that carry ranks: the members, numbered as ranks come to them */
    uint32_t *host;         /* member -> host of the fabric */
    uint32_t ranks;
    uint32_t slots;      /* ranks on the fullest host */
    uint32_t *member_of; /* rank -> member of paths */
    uint32_t *member_at; /* host of the fabric -> member, or IBSHIFT_NO_HOST */
    uint32_t *start;     /* member -> its ranks are rank_on[start[m] .. start[m + 1]), ascending */
    uint32_t *rank_on;
} ibshift_placement_t;

/* host_of[rank]: index of a host of the fabric. 0, -EINVAL, -ENOMEM. */
int ibshift_placement_open(const ibshift_fabric_t *f, const uint32_t *host_of, uint32_t ranks,
                           ibshift_placement_t **placement, ibshift_error_t *err);
/* Follows the routes among the hosts, to all LIDs of a host or to its first alone. 0, or what
 * ibshift_paths_build() says. */
int ibshift_placement_routes(ibshift_placement_t *placement, bool all_lids, ibshift_error_t *err);
void ibshift_placement_close(ibshift_placement_t *placement);

/* An order of ranks that owns its arrays. */
typedef struct ibshift_seats {
    struct ibshift_order order;
    uint32_t *rank_at, *seat_of;
} ibshift_seats_t;

/*
 * Seats along hosts[count]; hosts without ranks and IBSHIFT_NO_HOST become place keepers, or are
 * left out if keepers is false. -ENOENT: a host with ranks is missing there.
 */
int ibshift_seats_along(const ibshift_placement_t *placement, const uint32_t *hosts, uint32_t count,
                        bool keepers, ibshift_seats_t *seats, ibshift_error_t *err);
/* One rank a place, in their own order: what a library does that knows no fabric. */
int ibshift_seats_by_rank(const ibshift_placement_t *placement, ibshift_seats_t *seats,
                          ibshift_error_t *err);
void ibshift_seats_free(ibshift_seats_t *seats);

/* The hosts' order that a compiled fabric carries, or the one found in its tables, with place
 * keepers. *order is the caller's to free. */
int ibshift_placement_order(const ibshift_fabric_t *f, uint32_t **order, uint32_t *count,
                            ibshift_error_t *err);

#endif
