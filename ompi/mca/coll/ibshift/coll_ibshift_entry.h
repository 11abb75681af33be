#ifndef IBSHIFT_COLL_ENTRY_H
#define IBSHIFT_COLL_ENTRY_H

#include "coll_ibshift.h"

/* X(name): the collectives that a module can have natively. */
#define IBSHIFT_NATIVE(X)                                                                          \
    X(allgather)                                                                                   \
    X(allgatherv)                                                                                  \
    X(allreduce)                                                                                   \
    X(alltoall)                                                                                    \
    X(alltoallv)                                                                                   \
    X(alltoallw)                                                                                   \
    X(barrier)                                                                                     \
    X(bcast)                                                                                       \
    X(exscan)                                                                                      \
    X(gather)                                                                                      \
    X(gatherv)                                                                                     \
    X(reduce)                                                                                      \
    X(reduce_scatter)                                                                              \
    X(reduce_scatter_block)                                                                        \
    X(scan)                                                                                        \
    X(scatter)                                                                                     \
    X(scatterv)

/* ... and those that it never has. */
#define IBSHIFT_NEIGHBOR(X)                                                                        \
    X(neighbor_allgather)                                                                          \
    X(neighbor_allgatherv)                                                                         \
    X(neighbor_alltoall)                                                                           \
    X(neighbor_alltoallv)                                                                          \
    X(neighbor_alltoallw)

/* The function slots of a collective, blocking, nonblocking and persistent: X(name) stands for
 * coll_<name> and coll_<name>_module. */
#define IBSHIFT_FORMS(X, name)                                                                     \
    X(name)                                                                                        \
    X(i##name)                                                                                     \
    X(name##_init)

/* Puts the three forms of a collective into the module's slots. */
#define IBSHIFT_INSTALLER(name) void ibshift_install_##name(mca_coll_base_module_t *module);
IBSHIFT_NATIVE(IBSHIFT_INSTALLER)

#endif
