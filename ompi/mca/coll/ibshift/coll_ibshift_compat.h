/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_COMPAT_H
#define IBSHIFT_COLL_COMPAT_H

/*
 * All differences between the Open MPI releases. No other file asks for the version.
 *
 * Structs of Open MPI change without a new interface version even between patch releases: a
 * component fits the release whose headers it was compiled with, and refuses every other one
 * (coll_ibshift_component.c).
 */

#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/runtime/params.h"

#include <errno.h>
#include <string.h>

#include "library.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define IBSHIFT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"
#define IBSHIFT_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#elif OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0
#define IBSHIFT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/pmix/pmix-internal.h"
#define IBSHIFT_MODEX_GLOBAL PMIX_GLOBAL
#else
#define IBSHIFT_COLL_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/pmix/pmix-internal.h"
#define IBSHIFT_MODEX_GLOBAL PMIX_GLOBAL
#if (OMPI_MAJOR_VERSION != 6 || OMPI_MINOR_VERSION != 0) && !defined(IBSHIFT_UNTESTED)
#error "ibshift knows Open MPI 4.1, 5.0 and 6.0; -DIBSHIFT_UNTESTED tries it as if it were 6.0"
#endif
#endif

#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/accelerator/base/base.h"
#endif

/* The number of a job among those that one mpirun has started: 1, and more when one spawns. */
#define IBSHIFT_LOCAL_JOB(jobid) ((jobid)&0xffff)

/*
 * Counts, and arrays of counts or of displacements for each rank: of int, and from 6.0 on as well of
 * size_t or ptrdiff_t, which a bit of the pointer says.
 */
#if OMPI_MAJOR_VERSION >= 6
typedef size_t ibshift_count_t;
typedef ompi_count_array_t ibshift_array_t; /* as ompi_disp_array_t is */
enum { IBSHIFT_ARRAY_MARK = 1 };            /* that bit, set for int */
#else
typedef int ibshift_count_t;
typedef const int *ibshift_array_t;
enum { IBSHIFT_ARRAY_MARK = 0 };

/* Open MPI's names in 6.0. */
#define ompi_disp_array_get(array, i)    ((array)[i])
#define ompi_count_array_ptr(array)      (array)
#define ompi_count_array_is_64bit(array) false
#define ompi_count_array_create(array)   (array)
#define ompi_count_array_create_c(array) (array)
#endif

static inline ptrdiff_t ibshift_array_at(ibshift_array_t array, size_t i)
{
    return ompi_disp_array_get(array, i);
}

static inline const void *ibshift_array_elements(ibshift_array_t array)
{
    return ompi_count_array_ptr(array);
}

static inline size_t ibshift_array_width(ibshift_array_t array)
{
    return ompi_count_array_is_64bit(array) ? sizeof(size_t) : sizeof(int);
}

static inline ibshift_array_t ibshift_array_of(const void *elements, size_t width)
{
    return sizeof(int) == width ? ompi_count_array_create(elements)
                                : ompi_count_array_create_c(elements);
}
#define IBSHIFT_NO_ARRAY ((ibshift_array_t)0)

/* The displacements of neighbor_alltoallw, in bytes, are MPI_Aint; before 6.0 nothing in an array says so. */
#if OMPI_MAJOR_VERSION >= 6
typedef ibshift_array_t ibshift_places_t;
enum { IBSHIFT_PLACES_ARE_APART = false };
#else
typedef const MPI_Aint *ibshift_places_t;
enum { IBSHIFT_PLACES_ARE_APART = true };
#endif

static inline size_t ibshift_displs_width(ibshift_array_t array, bool are_places)
{
    return IBSHIFT_PLACES_ARE_APART && are_places ? sizeof(MPI_Aint) : ibshift_array_width(array);
}

static inline ptrdiff_t ibshift_displs_at(ibshift_array_t array, size_t i, bool are_places)
{
    return IBSHIFT_PLACES_ARE_APART && are_places
               ? ((const MPI_Aint *)ibshift_array_elements(array))[i]
               : ibshift_array_at(array, i);
}

/*
 * The slots of a communicator's table. Up to 5.0 the functions of an enabled module come there by
 * who enables it, and each slot holds its module. From 6.0 on enable() puts them there, and
 * disable() takes them away, once; who enables a module holds it.
 */
#if OMPI_MAJOR_VERSION >= 6
enum { IBSHIFT_SLOTS_HOLD = false };

#define IBSHIFT_ENTER_SLOT(comm, module, name)                                                     \
    MCA_COLL_INSTALL_API(comm, name, (module)->coll_##name, module, "ibshift")

#define IBSHIFT_LEAVE_SLOT(comm, module, before, name)                                             \
    if (NULL != (module)->coll_##name && (module) == (comm)->c_coll->coll_##name##_module) {       \
        MCA_COLL_INSTALL_API(comm, name, (before)->coll_##name, (before)->coll_##name##_module,    \
                             "ibshift");                                                           \
    }

/* Of a module that has been enabled: what was in the slot before comes back, if need be. */
#define IBSHIFT_BORROW_SLOT(comm, module, before, replaces, name)                                  \
    if (!(replaces) && NULL != (before)->coll_##name) {                                            \
        (comm)->c_coll->coll_##name = (before)->coll_##name;                                       \
        (comm)->c_coll->coll_##name##_module = (before)->coll_##name##_module;                     \
    }
#else
enum { IBSHIFT_SLOTS_HOLD = true };

#define IBSHIFT_ENTER_SLOT(comm, module, name)
#define IBSHIFT_LEAVE_SLOT(comm, module, before, name)

#define IBSHIFT_BORROW_SLOT(comm, module, before, replaces, name)                                  \
    if (NULL != (module)->coll_##name && ((replaces) || NULL == (before)->coll_##name)) {          \
        if (NULL != (before)->coll_##name##_module) {                                              \
            OBJ_RELEASE((before)->coll_##name##_module);                                           \
        }                                                                                          \
        (comm)->c_coll->coll_##name = (module)->coll_##name;                                       \
        (comm)->c_coll->coll_##name##_module = module;                                             \
        OBJ_RETAIN(module);                                                                        \
    }
#endif

/* A component that is compiled into Open MPI's library is found by what this declares there. */
#ifndef MCA_BASE_COMPONENT_INIT
#define MCA_BASE_COMPONENT_INIT(project, framework, name)
#endif

/* The i-th of those; NULL: there are no more. */
static inline const mca_base_component_t *
ibshift_compat_static(const mca_base_framework_t *framework, int i)
{
#if OMPI_MAJOR_VERSION >= 6
    const mca_base_component_t ***all = framework->framework_static_components;

    return NULL == all || NULL == all[i] ? NULL : *all[i];
#else
    const mca_base_component_t **all = framework->framework_static_components;

    return NULL == all ? NULL : all[i];
#endif
}

/*
 * Fault tolerance (ULFM). lost(): MPI's error class once the communicator was revoked or has lost a
 * rank. peer_failed(): that of a collective whose peer does not answer. From 6.0 on modules are told of
 * it, in 5.0 they have to look.
 */
static inline int ibshift_comm_lost(const struct ompi_communicator_t *comm)
{
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
    if (comm->comm_revoked || comm->coll_revoked) {
        return comm->comm_revoked ? MPI_ERR_REVOKED : MPI_ERR_PROC_FAILED;
    }
#endif
    return OMPI_SUCCESS;
}

static inline int ibshift_compat_peer_failed(void)
{
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
    return ompi_ftmpi_enabled ? MPI_ERR_PROC_FAILED : MPI_ERR_OTHER;
#else
    return MPI_ERR_OTHER;
#endif
}

static inline bool ibshift_compat_is_tolerant(void)
{
    return MPI_ERR_OTHER != ibshift_compat_peer_failed();
}

#if OMPI_MAJOR_VERSION >= 6
#define IBSHIFT_SET_REVOKE(module, function) (module)->coll_revoke_local = function
enum { IBSHIFT_LOOKS_FOR_LOST = false };
#else
#define IBSHIFT_SET_REVOKE(module, function)
enum { IBSHIFT_LOOKS_FOR_LOST = OMPI_MAJOR_VERSION == 5 };
#endif

/* Events of MPI_T, which come with a header of their own. A handle; NULL: there are none. */
#if __has_include("opal/mca/base/mca_base_event.h")
#include "opal/mca/base/mca_base_event.h"
#include "opal/mca/base/mca_base_pvar.h"

typedef mca_base_event_t ibshift_compat_event_t;

static inline ibshift_compat_event_t *
ibshift_compat_event(const mca_base_component_t *component, const char *name, const char *help,
                     int elements, const mca_base_var_type_t *types, const ptrdiff_t *places)
{
    mca_base_event_source_t *source;
    mca_base_event_t *event;
    int i = mca_base_event_source_register("ompi.coll_ibshift", "What collectives of ibshift do",
                                           MCA_BASE_EVENT_SOURCE_ORDERED, 1000000000,
                                           OPAL_COUNT_MAX, NULL, true, NULL);

    if (i < 0 || OPAL_SUCCESS != mca_base_event_source_get_by_index(i, &source)) {
        return NULL;
    }
    i = mca_base_component_event_register(component, name, help, OPAL_INFO_LVL_4, elements, types,
                                          places, NULL, MCA_BASE_VAR_BIND_NO_OBJECT, 0, source,
                                          NULL);
    return i < 0 || OPAL_SUCCESS != mca_base_event_get_by_index(i, &event) ? NULL : event;
}

static inline void ibshift_compat_raise(ibshift_compat_event_t *event, const void *data)
{
    mca_base_event_raise(event, event->source, data);
}
#else
typedef void ibshift_compat_event_t;

static inline ibshift_compat_event_t *
ibshift_compat_event(const mca_base_component_t *component, const char *name, const char *help,
                     int elements, const mca_base_var_type_t *types, const ptrdiff_t *places)
{
    return NULL;
}

static inline void ibshift_compat_raise(ibshift_compat_event_t *event, const void *data)
{
}
#endif

/* The program has said that it has no memory of devices there. */
static inline bool ibshift_comm_is_host_only(const struct ompi_communicator_t *comm)
{
#ifdef OMPI_COMM_ASSERT_NO_ACCEL_BUF
    return OMPI_COMM_CHECK_ASSERT_NO_ACCEL_BUF(comm);
#else
    return false;
#endif
}

/* What Open MPI itself knows of memory of devices, where it was built for them. */
#if OMPI_MAJOR_VERSION >= 5
static inline bool ibshift_compat_is_device(const void *address)
{
    uint64_t flags;
    int device;

    return opal_accelerator.check_addr(address, &device, &flags) > 0;
}

static inline int ibshift_compat_copy(void *to, const void *from, size_t bytes)
{
    return OPAL_SUCCESS == opal_accelerator.mem_copy(MCA_ACCELERATOR_NO_DEVICE_ID,
                                                     MCA_ACCELERATOR_NO_DEVICE_ID, to, from, bytes,
                                                     MCA_ACCELERATOR_TRANSFER_UNSPEC)
               ? 0
               : -EIO;
}

static const struct ibshift_device_hooks ibshift_compat_device = {
    "Open MPI's accelerator framework", ibshift_compat_is_device, ibshift_compat_copy};

static inline const struct ibshift_device_hooks *ibshift_compat_devices(void)
{
    const char *name = opal_accelerator_base_selected_component.base_version.mca_component_name;

    return 0 != strcmp(name, "null") ? &ibshift_compat_device : NULL;
}
#else
static inline const struct ibshift_device_hooks *ibshift_compat_devices(void)
{
    return NULL; /* 4.1 has its own for CUDA alone, whose driver it has loaded then */
}
#endif

/*
 * A number that is the same on all ranks of the communicator and that no other communicator of
 * these processes has at the same time. IBSHIFT_NO_NUMBER: the ranks have to agree on one, drawn
 * from the long identifier, which is alike on them. False: it is beyond what keys have room for
 * (net.h).
 */
enum {
    IBSHIFT_AGREED_NUMBERS = 1 << (IBSHIFT_NET_COMM_BITS - 1) /* and above; those below are given */
};
#define IBSHIFT_NO_NUMBER UINT32_MAX
#define IBSHIFT_AGREEING  (UINT32_MAX - 1)

static inline bool ibshift_comm_wire_id(const struct ompi_communicator_t *comm, uint32_t *id)
{
#if OMPI_MAJOR_VERSION == 4
    *id = comm->c_contextid;
#else
    *id = OMPI_COMM_IS_GLOBAL_INDEX(comm) ? comm->c_index : IBSHIFT_NO_NUMBER;
#endif
    return IBSHIFT_NO_NUMBER == *id || *id < IBSHIFT_AGREED_NUMBERS;
}

static inline uint64_t ibshift_comm_long_id(const struct ompi_communicator_t *comm)
{
#if OMPI_MAJOR_VERSION == 4
    return comm->c_contextid;
#else
    return comm->c_contextid.cid_base + (comm->c_contextid.cid_sub.u64 << 48);
#endif
}

#endif
