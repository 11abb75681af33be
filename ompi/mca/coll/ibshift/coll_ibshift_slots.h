#ifndef IBSHIFT_COLL_SLOTS_H
#define IBSHIFT_COLL_SLOTS_H

/*
 * The function slots of a communicator: X(name) stands for coll_<name> and coll_<name>_module.
 * Each collective has a blocking, a nonblocking and a persistent form.
 */
#define IBSHIFT_FORMS(X, name)                                                                     \
    X(name)                                                                                        \
    X(i##name)                                                                                     \
    X(name##_init)

#define IBSHIFT_COLLECTIVE_SLOTS(X)                                                                \
    IBSHIFT_FORMS(X, allgather)                                                                    \
    IBSHIFT_FORMS(X, allgatherv)                                                                   \
    IBSHIFT_FORMS(X, allreduce)                                                                    \
    IBSHIFT_FORMS(X, alltoall)                                                                     \
    IBSHIFT_FORMS(X, alltoallv)                                                                    \
    IBSHIFT_FORMS(X, alltoallw)                                                                    \
    IBSHIFT_FORMS(X, barrier)                                                                      \
    IBSHIFT_FORMS(X, bcast)                                                                        \
    IBSHIFT_FORMS(X, exscan)                                                                       \
    IBSHIFT_FORMS(X, gather)                                                                       \
    IBSHIFT_FORMS(X, gatherv)                                                                      \
    IBSHIFT_FORMS(X, reduce)                                                                       \
    IBSHIFT_FORMS(X, reduce_scatter)                                                               \
    IBSHIFT_FORMS(X, reduce_scatter_block)                                                         \
    IBSHIFT_FORMS(X, scan)                                                                         \
    IBSHIFT_FORMS(X, scatter)                                                                      \
    IBSHIFT_FORMS(X, scatterv)

#define IBSHIFT_NEIGHBOR_SLOTS(X)                                                                  \
    IBSHIFT_FORMS(X, neighbor_allgather)                                                           \
    IBSHIFT_FORMS(X, neighbor_allgatherv)                                                          \
    IBSHIFT_FORMS(X, neighbor_alltoall)                                                            \
    IBSHIFT_FORMS(X, neighbor_alltoallv)                                                           \
    IBSHIFT_FORMS(X, neighbor_alltoallw)

#endif
