#ifndef IBSHIFT_COLL_ROUTE_H
#define IBSHIFT_COLL_ROUTE_H

/*
 * The order of a communicator's all-to-alls on the fabric's routes. Found at the first all-to-all,
 * in two steps, each at the same call on all ranks:
 *
 *     located   by every rank alone, from the cards and the file: a shift in routing order
 *     settled   at the first call that may wait (blocking, or the making of a persistent one): rank
 *               0 prices the ways, tells the others, and hands out the rows of a table
 *
 * What a call has taken stays valid until the communicator goes.
 */

#include <stdbool.h>

#include "alg/alg.h"
#include "fabric/placement.h"

struct mca_coll_ibshift_module_t;
struct ompi_communicator_t;

struct ibshift_route {
    bool is_located, is_settled;
    ibshift_seats_t located, settled; /* settled.rank_at NULL: the located ones hold */
    uint32_t *row;                    /* this rank's row of a table: to, then from */
    struct ibshift_stages table;
    const struct ibshift_order *order; /* what counts now; NULL: rank order */
    const struct ibshift_stages *stages;
};

/* OMPI codes. Without a fabric file nothing happens. */
int ibshift_route_find(struct mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       enum ibshift_collective collective, bool may_wait);
void ibshift_route_free(struct ibshift_route *route);

/* Whether a row fits what was found: rows that could take an order, but know none, are left out
 * where there is one. */
bool ibshift_route_allows(const struct ibshift_plan *plan, const struct ibshift_alg *alg);

#endif
