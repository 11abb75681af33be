#ifndef IBSHIFT_COLL_COMPANY_H
#define IBSHIFT_COLL_COMPANY_H

/*
 * Whom the ranks of a communicator share their hosts' processors and ports with, and what kind of
 * device they have: what a price depends on beside the plan. From the cards, which all ranks see
 * alike.
 */

#include "choose/price.h"

struct mca_coll_ibshift_module_t;
struct ompi_communicator_t;

struct ibshift_company {
    const struct ibshift_crowd *crowd; /* NULL: not looked at yet */
    bool is_software;                  /* a device of any rank */
    bool is_node;                      /* all share memory */
    struct ibshift_crowd numbered;
    uint32_t *memory; /* of numbered */
};

/* Looks at the cards when nobody has. OMPI codes. */
int ibshift_company_find(struct mca_coll_ibshift_module_t *module,
                         const struct ompi_communicator_t *comm);
void ibshift_company_free(struct ibshift_company *company);

#endif
