#ifndef IBSHIFT_COLL_SETTLE_H
#define IBSHIFT_COLL_SETTLE_H

/*
 * The way that the all-to-alls of a set of processes go: found by one rank, told to the others, who
 * keep their own part of it. Kept for the next communicator of the same processes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "fabric/table/arrange.h"

struct mca_coll_ibshift_module_t;
struct ompi_communicator_t;

/* Shared by the communicators of the same processes; read-only. */
struct ibshift_settled {
    unsigned users; /* under the lock of coll_ibshift_settle.c */
    uint32_t size;
    uint32_t *peers;            /* in the order of their ranks: what it is for */
    struct ibshift_seats seats; /* of a shift */
    enum ibshift_way way;
    uint32_t *row; /* of this rank in a table: to, from, and LIDs where there are several */
    struct ibshift_stages table;
    const struct ibshift_order *order;   /* NULL: stages */
    const struct ibshift_stages *stages; /* NULL: a shift */
    struct ibshift_settled *next;
};

/* At the same call on all ranks. OMPI codes. */
int ibshift_settle(struct mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                   struct ibshift_settled **settled);
/* NULL is fine. */
void ibshift_settled_release(struct ibshift_settled *settled);
/* Forgets what no communicator uses. */
void ibshift_settled_forget(void);

#endif
