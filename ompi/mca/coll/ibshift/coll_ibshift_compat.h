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

#include <errno.h>
#include <string.h>

#include "ibshift.h"

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
#error                                                                                             \
    "ibshift knows Open MPI 4.1 and 5.0; say in coll_ibshift_compat.h what differs in this release"
#endif

#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/accelerator/base/base.h"
#endif

#define IBSHIFT_TEXT_OF(x)          #x
#define IBSHIFT_VERSION_OF(a, b, c) IBSHIFT_TEXT_OF(a) "." IBSHIFT_TEXT_OF(b) "." IBSHIFT_TEXT_OF(c)
#define IBSHIFT_OMPI_RELEASE                                                                       \
    IBSHIFT_VERSION_OF(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)

/* The number of a job among those that one mpirun has started: 1, and more when one spawns. */
#define IBSHIFT_LOCAL_JOB(jobid) ((jobid)&0xffff)

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
 * these processes has at the same time. False: there is none (made from an MPI session), or it is
 * beyond what keys have room for (net.h).
 */
static inline bool ibshift_comm_wire_id(const struct ompi_communicator_t *comm, uint32_t *id)
{
#if OMPI_MAJOR_VERSION == 4
    *id = comm->c_contextid;
    return *id == ibshift_net_comm(*id);
#else
    *id = comm->c_index;
    return OMPI_COMM_IS_GLOBAL_INDEX(comm) && *id == ibshift_net_comm(*id);
#endif
}

#endif
