/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"

#include "ompi/group/group.h"
#include "opal/mca/hwloc/base/base.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/memoryhooks/memory.h"
#include "opal/runtime/opal_params.h"
#include "opal/util/arch.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Registrations that outlive their use, under the lock of the net that uses them. */
static struct {
    mca_rcache_base_module_t *rcache;
    uint64_t uses, registrations;
} cache;

struct registration {
    mca_rcache_base_registration_t super; /* first: the cache's own */
    struct ibshift_region region;
};

static int register_memory(void *context, void *base, size_t size,
                           mca_rcache_base_registration_t *reg)
{
    struct registration *r = (struct registration *)reg;
    int rc = ibshift_region_register(context, base, size, &r->region);

    cache.registrations += 0 == rc;
    return 0 == rc ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static int deregister_memory(void *context, mca_rcache_base_registration_t *reg)
{
    struct registration *r = (struct registration *)reg;

    return 0 == ibshift_region_deregister(&r->region) ? OPAL_SUCCESS : OPAL_ERROR;
}

static int get(void *context, void *base, size_t length, struct ibshift_region **region)
{
    mca_rcache_base_registration_t *reg = NULL;

    if (OPAL_SUCCESS !=
        cache.rcache->rcache_register(cache.rcache, base, length, 0, MCA_RCACHE_ACCESS_ANY, &reg)) {
        return -ENOMEM;
    }
    cache.uses++;
    *region = &((struct registration *)reg)->region;
    return 0;
}

static void put(void *context, struct ibshift_region *region)
{
    char *reg = (char *)region - offsetof(struct registration, region);

    (void)cache.rcache->rcache_deregister(cache.rcache, (mca_rcache_base_registration_t *)reg);
}

/* Open MPI may come to know it late. */
static bool finds_again(void)
{
    return opal_leave_pinned > 0;
}

/* Nobody has said whether registrations may outlive their use: they may when unmapping is seen. */
static void allow_leave_pinned(void)
{
    int needed = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;

    if (opal_leave_pinned < 0 && (opal_mem_hooks_support_level() & needed) == needed) {
        opal_leave_pinned = 1;
    }
}

/*
 * Registered memory stays registered as long as Open MPI's memory hooks see that it is mapped: its
 * registration cache "grdma" with our own callbacks. NULL: there is no such cache here, the net
 * then registers for each message.
 */
static const struct ibshift_region_cache *open_cache(struct ibshift_verbs *verbs)
{
    static const struct ibshift_region_cache regions = {
        .get = get, .put = put, .finds_again = finds_again};
    static char name[] = "ibshift";
    mca_rcache_base_resources_t resources = {
        .cache_name = name,
        .reg_data = verbs,
        .sizeof_reg = sizeof(struct registration),
        .register_mem = register_memory,
        .deregister_mem = deregister_memory,
    };

    allow_leave_pinned();
    cache.rcache = mca_rcache_base_module_create("grdma", NULL, &resources);
    return NULL != cache.rcache ? &regions : NULL;
}

static void close_cache(void)
{
    if (NULL != cache.rcache) {
        (void)mca_rcache_base_module_destroy(cache.rcache);
        cache.rcache = NULL;
    }
}

static char *receive(uint32_t peer, size_t *size)
{
    opal_process_name_t name = {.jobid = OMPI_PROC_MY_NAME->jobid, .vpid = peer};
    char *received = NULL;
    int rc;

    OPAL_MODEX_RECV(rc, &mca_coll_ibshift_component.collm_version, &name, (void **)&received, size);
    return OPAL_SUCCESS == rc ? received : NULL;
}

void ibshift_transport_open(ibshift_trace_t *(*open_trace)(void))
{
    static struct ibshift_launch launch;
    char card[IBSHIFT_CARD_MAX];
    size_t size;
    int rc;

    launch = (struct ibshift_launch){
        .self = OMPI_PROC_MY_NAME->vpid,
        .processes = ompi_process_info.num_procs,
        .job = OMPI_PROC_MY_NAME->jobid,
        .place = (uint32_t)ompi_process_info.my_local_rank,
        .near = (uint32_t)ompi_process_info.num_local_peers + 1,
        .topology = OPAL_SUCCESS == opal_hwloc_base_get_topology() ? opal_hwloc_topology : NULL,
        .has_threads = &opal_uses_threads,
        .is_tolerant = ibshift_compat_is_tolerant(),
        .comms = ibshift_comms,
        .exchange = {opal_local_arch, receive, ibshift_params_differ},
        .release = {OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION},
        .open_cache = open_cache,
        .close_cache = close_cache,
        .open_trace = open_trace,
    };
    size = ibshift_endpoint_open(&launch, card);
    OPAL_MODEX_SEND(rc, IBSHIFT_MODEX_GLOBAL, &mca_coll_ibshift_component.collm_version, card,
                    size);
    (void)rc; /* without a card the others do not find this process, which is right then */
}

void ibshift_transport_counters(struct ibshift_transport_counters *counters)
{
    struct ibshift_engine *engine = ibshift_endpoint.engine;

    *counters = (struct ibshift_transport_counters){0};
    if (NULL != engine) {
        counters->engine = ibshift_engine_stats(engine);
        ibshift_engine_lock(engine);
        if (NULL != ibshift_endpoint.adapter) {
            ibshift_net_verbs_stats(ibshift_endpoint.adapter, &counters->net);
        }
        if (NULL != ibshift_endpoint.node) {
            ibshift_net_node_stats(ibshift_endpoint.node, &counters->node);
        }
        counters->registrations = cache.registrations;
        counters->registration_hits =
            cache.uses > cache.registrations ? cache.uses - cache.registrations : 0;
        ibshift_engine_unlock(engine);
    }
}

/* Once a job: of all its processes, by the first. */
static void report_absent(uint32_t size)
{
    char text[512];
    uint32_t first, count = ibshift_cards_absent(size, &first, text, sizeof(text));

    if (count > 0) {
        ibshift_help_once_a_job("unlike", count, size, first, text);
    }
    if (!ibshift_params.explain && ibshift_cards_keys_apart(size, text, sizeof(text))) {
        ibshift_help("keys-apart", text);
    }
}

uint32_t *ibshift_cards_peers(struct ompi_communicator_t *comm)
{
    uint32_t size = (uint32_t)ompi_comm_size(comm);
    uint32_t *peers = malloc(size * sizeof(*peers));
    bool is_one_job = true; /* another (spawned, connected) has other numbers for its processes */

    for (uint32_t i = 0; NULL != peers && i < size; i++) {
        opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, (int)i);

        peers[i] = name.vpid;
        is_one_job &= name.jobid == OMPI_PROC_MY_NAME->jobid;
    }
    if (NULL == peers) {
        ibshift_absent(comm);
        return NULL;
    }
    if (is_one_job && ibshift_cards_reach(peers, size)) {
        return peers;
    }
    free(peers);
    if (NULL != ibshift_endpoint.net && comm == &ompi_mpi_comm_world.comm &&
        0 == OMPI_PROC_MY_NAME->vpid) {
        report_absent(size);
    }
    return NULL;
}
