#ifndef IBSHIFT_TEST_MPI_COLLS_H
#define IBSHIFT_TEST_MPI_COLLS_H

#include "check.h"
#include "data.h"

/* How every collective is to be tried. */
struct how {
    enum form form;
    const struct layout *layout;
    int count; /* elements of a block */
    int root;
    bool in_place;
    MPI_Op op; /* of the reductions, on layout->type */
};

/* The 17 collectives of an intracommunicator against results computed here. */
void check_collectives(MPI_Comm comm, const struct how *how);

/* A short round of all forms: what a fresh communicator must be able to do. */
void check_communicator(MPI_Comm comm);

/* The parts of check_collectives(). */
void check_data_movement(MPI_Comm comm, const struct how *how);
void check_vectors(MPI_Comm comm, const struct how *how);
void check_reductions(MPI_Comm comm, const struct how *how);

#endif
