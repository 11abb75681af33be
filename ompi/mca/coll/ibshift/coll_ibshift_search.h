#ifndef IBSHIFT_COLL_SEARCH_H
#define IBSHIFT_COLL_SEARCH_H

#include "coll_ibshift_call.h"

/* The search for one choice, and what its explanation needs. */
struct ibshift_search {
    const struct ibshift_job *job;
    struct ibshift_op_params *params;
    const struct ibshift_company *company;
    uint64_t bytes;                     /* of the class, not of the call */
    struct ibshift_choice best, second; /* alg NULL: there is none */
    int candidates;
    const char *order; /* in words, of an all-to-all; NULL: none */
    bool is_renamed;   /* runs along the fabric's routing order */
};

/* The row that a parameter asks for, or NULL. */
const struct ibshift_alg *ibshift_forced_row(enum ibshift_collective collective);

/* Whether the row can do with the sizes that ranks know in this job. */
bool ibshift_serves(const struct ibshift_alg *alg, const struct ibshift_job *job);

/* Says once for each collective that a parameter's algorithm cannot do what it was asked for. */
void ibshift_explain_unfit(const struct ibshift_search *search,
                           const struct ompi_communicator_t *comm);

/* One line to standard error. */
void ibshift_explain(const struct ibshift_search *search, const struct ompi_communicator_t *comm);

#endif
