#ifndef IBSHIFT_COLL_ROUTE_H
#define IBSHIFT_COLL_ROUTE_H

/*
 * What the fabric file does for a communicator's collectives, in two steps, each at the same call
 * on all ranks:
 *
 *     located   at the first collective that an order serves, by every rank alone, from the cards
 *               and the file: all-to-alls are a shift in routing order, or in rank order where
 *               that is cheaper; rings and trees go along the routing order
 *     settled   at the first all-to-all that may wait (blocking, or the making of a persistent one)
 *               and by which the search pays: rank 0 prices the ways (coll_ibshift_settle.h)
 *
 * What a call has taken stays valid until the communicator goes.
 */

#include <stdbool.h>

#include "plan/alg.h"
#include "fabric/table/arrange.h"

struct mca_coll_ibshift_module_t;
struct ompi_communicator_t;
struct ibshift_job;
struct ibshift_settled;

/*
 * The ranks in routing order, those of one host together: the rank map of rings and trees. The
 * plan counts places along the line, emit() never sees the communicator's ranks.
 */
struct ibshift_line {
    uint32_t *rank_at;  /* place -> rank */
    uint32_t *place_of; /* rank -> place */
    uint32_t *peers;    /* place -> peer of the net */
    int *ones;          /* blocks of one unit each, at the places' ranks */
};

struct ibshift_route {
    bool is_located, is_settled;
    struct ibshift_seats located;
    enum ibshift_way way;     /* of an all-to-all with an order, or stages */
    struct ibshift_line line; /* rank_at NULL: none */
    struct ibshift_settled *settled;
    uint64_t moved;                    /* bytes that a rank has sent each other one */
    const struct ibshift_order *order; /* of all-to-alls, now; NULL: rank order */
    const struct ibshift_stages *stages;
};

/* How a call may find what is missing. */
enum ibshift_patience {
    IBSHIFT_PATIENCE_NONE, /* it must not wait for others */
    IBSHIFT_PATIENCE_ONCE, /* it may, and runs once */
    IBSHIFT_PATIENCE_LONG  /* it may, and runs often */
};

/* OMPI codes. Without a fabric file nothing happens. */
int ibshift_route_find(struct mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       const struct ibshift_job *job, enum ibshift_patience patience);
void ibshift_route_free(struct ibshift_route *route);

/* Which order the row takes of the plan's, for explain: "in routing order". NULL: none. */
const char *ibshift_route_order(const struct mca_coll_ibshift_module_t *module,
                                const struct ibshift_plan *plan, const struct ibshift_alg *alg);

/* Whether the row runs along the line for this job: the same on all ranks. */
bool ibshift_route_renames(const struct mca_coll_ibshift_module_t *module,
                           const struct ibshift_job *job, const struct ibshift_alg *alg);

/* For coll_ibshift_settle.c: the ranks on the fabric's hosts; NULL with a negative errno in rc, and
 * the reason in why where the file does not fit. And the seats of a way that is a shift. */
struct ibshift_placement *ibshift_route_place(const struct mca_coll_ibshift_module_t *module,
                                              char *why, size_t size, int *rc);
int ibshift_route_seat(const struct ibshift_placement *placement, enum ibshift_way way,
                       struct ibshift_seats *seats, struct ibshift_error *err);

#endif
