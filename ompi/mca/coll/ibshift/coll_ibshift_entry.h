#ifndef IBSHIFT_COLL_ENTRY_H
#define IBSHIFT_COLL_ENTRY_H

#include "coll_ibshift_request.h"
#include "coll_ibshift_tapes.h"

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
#define IBSHIFT_INSTALL(name)   void ibshift_install_##name(mca_coll_base_module_t *module);
#define IBSHIFT_INSTALLER(name) IBSHIFT_INSTALL(name)
IBSHIFT_NATIVE(IBSHIFT_INSTALLER)

#define IBSHIFT_LIST(...) __VA_ARGS__

/*
 * The three forms of a collective from one description, and from what a call is looked up by among
 * the last ones:
 *     static int describe_<name>(<its arguments>, const mca_coll_ibshift_module_t *,
 *                                struct ibshift_job *);
 *     static struct ibshift_raw raw_<name>(<its arguments>, const mca_coll_ibshift_module_t *);
 * kind is its enum ibshift_collective. params and args are the arguments before the communicator, in parentheses, each with a comma
 * behind it. What describe() or the choice refuses runs in the fallback. Leaders hear the counts of
 * their node in blocking calls alone: the others may not wait before they have returned.
 */
#define IBSHIFT_ENTRIES(coll, kind, params, args)                                                  \
    __attribute__((noinline)) static int coll##_slowly(                                            \
        IBSHIFT_LIST params struct ompi_communicator_t *comm, mca_coll_ibshift_module_t *module,   \
        struct ibshift_tape_run *run)                                                              \
    {                                                                                              \
        struct ibshift_raw raw = raw_##coll(IBSHIFT_LIST args module);                             \
        struct ibshift_job job = {.name = #coll};                                                  \
        int rc;                                                                                    \
                                                                                                   \
        if (NULL == run) {                                                                         \
            run = ibshift_tape_again(module, IBSHIFT_BLOCKING, kind, &raw);                        \
            if (NULL != run && ibshift_call_run(module, run)) {                                    \
                return OMPI_SUCCESS;                                                               \
            }                                                                                      \
        }                                                                                          \
        rc = describe_##coll(IBSHIFT_LIST args module, &job);                                      \
        if (OMPI_SUCCESS == rc) {                                                                  \
            rc = ibshift_call_blocking(module, comm, &job, &raw, run);                             \
        }                                                                                          \
        return OMPI_ERR_NOT_SUPPORTED != rc                                                        \
                   ? rc                                                                            \
                   : module->fallback.coll_##coll(IBSHIFT_LIST args comm,                          \
                                                  module->fallback.coll_##coll##_module);          \
    }                                                                                              \
                                                                                                   \
    static int coll##_blocking(IBSHIFT_LIST params struct ompi_communicator_t *comm,               \
                               mca_coll_base_module_t *base)                                       \
    {                                                                                              \
        mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;                     \
        struct ibshift_tape_run *run = ibshift_tape_latest(module, IBSHIFT_BLOCKING, kind,         \
                                                           raw_##coll(IBSHIFT_LIST args module));  \
                                                                                                   \
        return NULL != run && ibshift_call_run(module, run)                                        \
                   ? OMPI_SUCCESS                                                                  \
                   : coll##_slowly(IBSHIFT_LIST args comm, module, run);                           \
    }                                                                                              \
                                                                                                   \
    __attribute__((noinline)) static int i##coll##_slowly(                                         \
        IBSHIFT_LIST params struct ompi_communicator_t *comm, ompi_request_t **request,            \
        mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run)                           \
    {                                                                                              \
        struct ibshift_raw raw = raw_##coll(IBSHIFT_LIST args module);                             \
        struct ibshift_job job = {.name = "i" #coll};                                              \
        int rc;                                                                                    \
                                                                                                   \
        if (NULL == run) {                                                                         \
            run = ibshift_tape_again(module, IBSHIFT_NONBLOCKING, kind, &raw);                     \
            if (NULL != run && ibshift_call_at_once(module, run, request)) {                       \
                return OMPI_SUCCESS;                                                               \
            }                                                                                      \
        }                                                                                          \
        rc = describe_##coll(IBSHIFT_LIST args module, &job);                                      \
        if (OMPI_SUCCESS == rc) {                                                                  \
            job.needs &= ~(uint32_t)IBSHIFT_ALG_SIZES_NODE;                                        \
            rc = ibshift_call_nonblocking(module, comm, &job, &raw, run, request);                 \
        }                                                                                          \
        return OMPI_ERR_NOT_SUPPORTED != rc                                                        \
                   ? rc                                                                            \
                   : module->fallback.coll_i##coll(IBSHIFT_LIST args comm, request,                \
                                                   module->fallback.coll_i##coll##_module);        \
    }                                                                                              \
                                                                                                   \
    static int coll##_nonblocking(IBSHIFT_LIST params struct ompi_communicator_t *comm,            \
                                  ompi_request_t **request, mca_coll_base_module_t *base)          \
    {                                                                                              \
        mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;                     \
        struct ibshift_tape_run *run = ibshift_tape_latest(module, IBSHIFT_NONBLOCKING, kind,      \
                                                           raw_##coll(IBSHIFT_LIST args module));  \
                                                                                                   \
        return NULL != run && ibshift_call_at_once(module, run, request)                           \
                   ? OMPI_SUCCESS                                                                  \
                   : i##coll##_slowly(IBSHIFT_LIST args comm, request, module, run);               \
    }                                                                                              \
                                                                                                   \
    static int coll##_persistent(IBSHIFT_LIST params struct ompi_communicator_t *comm,             \
                                 struct ompi_info_t *info, ompi_request_t **request,               \
                                 mca_coll_base_module_t *base)                                     \
    {                                                                                              \
        mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;                     \
        struct ibshift_job job = {.name = #coll "_init"};                                          \
        int rc = describe_##coll(IBSHIFT_LIST args module, &job);                                  \
                                                                                                   \
        if (OMPI_SUCCESS == rc) {                                                                  \
            job.needs &= ~(uint32_t)IBSHIFT_ALG_SIZES_NODE;                                        \
            rc = ibshift_call_persistent(module, comm, &job, request);                             \
        }                                                                                          \
        return OMPI_ERR_NOT_SUPPORTED != rc ? rc                                                   \
                                            : module->fallback.coll_##coll##_init(                 \
                                                  IBSHIFT_LIST args comm, info, request,           \
                                                  module->fallback.coll_##coll##_init_module);     \
    }                                                                                              \
                                                                                                   \
    void ibshift_install_##coll(mca_coll_base_module_t *module)                                    \
    {                                                                                              \
        module->coll_##coll = coll##_blocking;                                                     \
        module->coll_i##coll = coll##_nonblocking;                                                 \
        module->coll_##coll##_init = coll##_persistent;                                            \
    }

#endif
