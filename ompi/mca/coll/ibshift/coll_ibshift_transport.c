/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_alltoall_order.h"
#include "coll_ibshift_choose.h"

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

enum { LINE = 256 };

static const uint64_t second = 1000000000;

struct ibshift_endpoint ibshift_endpoint;

static struct {
    struct ibshift_verbs *verbs;
    struct ibshift_net *adapter, *node; /* the nets that there are; NULL: none */
    char why_not[2 * LINE];             /* there is no adapter */
    bool is_to_be_said; /* why_not: unasked; a host without a device is none of our business */
} own;

/* Registrations that outlive their use, under the lock of the net that uses them. */
static struct {
    mca_rcache_base_module_t *rcache;
    uint64_t uses, registrations;
} cache;

struct registration {
    mca_rcache_base_registration_t super; /* first: the cache's own */
    struct ibshift_region region;
};

static void say(void *context, const char *line)
{
    ibshift_help_once_a_host("warning", ompi_process_info.nodename, line);
}

/* Ports are chosen by it when there is more than one; NULL: all are as near. */
static void *topology(void)
{
    return OPAL_SUCCESS == opal_hwloc_base_get_topology() ? opal_hwloc_topology : NULL;
}

/* A longer eager limit needs more memory than the same number of shorter messages. */
static void fit_memory(struct ibshift_net_verbs_options *options)
{
    size_t least = ibshift_net_verbs_memory_min(options);
    char which[LINE], with[LINE];

    if (options->memory < least) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_memory = %zu is too little for coll_ibshift_eager_limit = %zu",
                 options->memory, options->max_eager);
        snprintf(with, sizeof(with), "with coll_ibshift_memory = %zu, the least", least);
        ibshift_help_once_a_job("contradiction", which, with);
        options->memory = least;
    }
}

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
static const struct ibshift_region_cache *open_cache(void)
{
    static const struct ibshift_region_cache regions = {.get = get, .put = put};
    static char name[] = "ibshift";
    mca_rcache_base_resources_t resources = {
        .cache_name = name,
        .reg_data = own.verbs,
        .sizeof_reg = sizeof(struct registration),
        .register_mem = register_memory,
        .deregister_mem = deregister_memory,
    };

    allow_leave_pinned();
    cache.rcache = mca_rcache_base_module_create("grdma", NULL, &resources);
    return NULL != cache.rcache ? &regions : NULL;
}

/* Has it got as far as to its collectives? */
static bool has_comm(void *context, uint32_t id, uint32_t member)
{
    struct ompi_communicator_t *comm = ompi_comm_lookup(id);
    const mca_coll_ibshift_module_t *module;
    uint32_t its_id;
    int rank = 0;

    if (NULL == comm || NULL == comm->c_coll || !ibshift_comm_wire_id(comm, &its_id) ||
        its_id != id || NULL == (module = ibshift_module_of(comm))) {
        return false;
    }
    if (IBSHIFT_ANY_MEMBER == member) {
        return true;
    }
    while (NULL != module->peers && rank < ompi_comm_size(comm) && module->peers[rank] != member) {
        rank++;
    }
    return NULL != module->peers && rank < ompi_comm_size(comm);
}

static struct ibshift_ledger *ledger(void *context, uint32_t id)
{
    struct ompi_communicator_t *comm = ompi_comm_lookup(id);
    mca_coll_ibshift_module_t *module =
        NULL != comm && NULL != comm->c_coll ? ibshift_module_of(comm) : NULL;

    return NULL != module && NULL != module->peers && module->wire_id == id ? &module->ledger
                                                                            : NULL;
}

int ibshift_revoke_local(struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    int code = ibshift_comm_lost(comm), first = OMPI_SUCCESS;

    if (NULL != module->peers && OMPI_SUCCESS != code &&
        atomic_compare_exchange_strong(&module->failed, &first, code)) {
        ibshift_engine_give_up(ibshift_endpoint.engine, module->wire_id,
                               module->peers[module->rank], -ECONNABORTED);
    }
    return OMPI_SUCCESS;
}

void ibshift_revoke_lost(void)
{
    for (int i = 0; i < opal_pointer_array_get_size(&ompi_mpi_communicators); i++) {
        struct ompi_communicator_t *comm = ompi_comm_lookup((uint32_t)i);
        mca_coll_ibshift_module_t *module =
            NULL == comm || NULL == comm->c_coll ? NULL : ibshift_module_of(comm);

        if (NULL != module) {
            (void)ibshift_revoke_local(comm, &module->super);
        }
    }
}

static const struct ibshift_net_comms comms = {.is_here = has_comm, .ledger = ledger};

static int open_adapter(char *error, size_t size)
{
    struct ibshift_verbs_options ports = {
        .ports = ibshift_params.device,
        .max_ports = ibshift_params.ports,
        .gid_index = ibshift_params.gid_index,
        .service_level = ibshift_params.service_level < 0 ? 0 : ibshift_params.service_level,
        .traffic_class = ibshift_params.traffic_class,
        .pkey = ibshift_params.pkey,
        .fork = -1,
        .topology = topology(),
    };
    struct ibshift_net_verbs_options options = ibshift_net_verbs_defaults;
    int rc = ibshift_verbs_open(&ports, &own.verbs, error, size);

    if (rc != 0) {
        return rc;
    }
    options.self = OMPI_PROC_MY_NAME->vpid;
    options.peers = ompi_process_info.num_procs;
    options.card = ibshift_card_copy;
    options.path = ibshift_fabric_path;
    options.service_level = ibshift_params.service_level < 0 ? ibshift_fabric_service_level : NULL;
    options.say = say;
    options.comms = comms;
    options.has_ended = ibshift_card_has_ended;
    options.memory = ibshift_params.memory;
    options.connections = (uint32_t)ibshift_params.connections;
    options.max_eager = ibshift_params.eager_limit;
    options.timeout = ibshift_params.timeout;
    options.retry = ibshift_params.retry;
    options.adaptive = ibshift_params.adaptive_data;
    options.cache = open_cache();
    fit_memory(&options);
    rc = ibshift_net_verbs_create(own.verbs, &options, &own.adapter, error, size);
    if (0 == rc && '\0' != error[0]) {
        say(NULL, error);
    }
    return rc;
}

/* Without it the ranks of a host talk over the adapter, or not natively. */
static void open_node(char *error, size_t size)
{
    struct ibshift_node_options options = {
        .processes = (uint32_t)ompi_process_info.num_local_peers + 1,
        .place = (uint32_t)ompi_process_info.my_local_rank,
        .job = OMPI_PROC_MY_NAME->jobid,
        .self = OMPI_PROC_MY_NAME->vpid,
        .memory = ibshift_params.node_memory,
        .may_copy = true,
        .is_gauged = !ibshift_endpoint.is_crowded, /* there an answer costs a turn, too */
        .looks = ibshift_endpoint.is_crowded ? IBSHIFT_NODE_LOOKS_CROWDED : IBSHIFT_NODE_LOOKS,
        .card = ibshift_card_node,
        .comms = comms,
        .say = say};

    if (!ibshift_params.node || options.processes < 2) {
        return;
    }
    if (0 != ibshift_net_node_create(&options, &own.node, error, size)) {
        say(NULL, error);
    }
}

/* There is no device, and none was asked for. */
static bool is_unasked(int rc)
{
    return -ENODEV == rc && '\0' == ibshift_params.device[0];
}

/* 0, or why there is no adapter; there may be a net all the same. */
static int open_net(char *error, size_t size)
{
    int rc = open_adapter(error, size);
    char no_memory[LINE] = "";

    open_node(no_memory, sizeof(no_memory));
    if (is_unasked(rc) && '\0' != no_memory[0]) {
        snprintf(error, size, "%s", no_memory); /* such a host is served by its memory, or not */
    }
    ibshift_endpoint.net = 0 != rc ? own.node : own.adapter;
    if (0 == rc && NULL != own.node) {
        ibshift_endpoint.net = ibshift_net_by_peer_create(
            own.node, own.adapter, ompi_process_info.num_procs, ibshift_card_is_near, NULL);
        if (NULL == ibshift_endpoint.net) { /* no memory: the adapter serves all */
            ibshift_net_destroy(own.node);
            own.node = NULL;
            ibshift_endpoint.net = own.adapter;
        }
    }
    return rc;
}

static void open_engine(ibshift_trace_t *(*open_trace)(void))
{
    struct ibshift_engine_options options = {
        .patience = second,
        .deadline = (uint64_t)ibshift_params.deadline * second,
        .has_threads = &opal_uses_threads,
    };
    char error[LINE] = "";
    int rc = open_net(error, sizeof(error));

    if (NULL != ibshift_endpoint.net) {
        options.trace = open_trace();
        ibshift_endpoint.engine = ibshift_engine_create(ibshift_endpoint.net, &options);
    }
    if (0 == rc) {
        return;
    }
    snprintf(own.why_not, sizeof(own.why_not), "host %s: %s", ompi_process_info.nodename, error);
    own.is_to_be_said = !is_unasked(rc);
    if (own.is_to_be_said) {
        if (-EINVAL == rc || -ENODEV == rc) {
            ibshift_help_once_a_job("bad-device", own.why_not);
        } else {
            ibshift_help_once_a_job("no-endpoint", own.why_not);
        }
    }
}

/* Ranks that the administrator's switch turns off stay in the job's exchange of cards, so that all
 * ranks agree. */
static bool is_switched_off(void)
{
    char why[LINE];

    if (!ibshift_params_switched_off(why, sizeof(why))) {
        return false;
    }
    ibshift_make_plain(why);
    snprintf(own.why_not, sizeof(own.why_not), "host %s: %s", ompi_process_info.nodename, why);
    return true;
}

static uint64_t find_costs(void)
{
    char device[IBSHIFT_MADE_TEXT] = "memory", firmware[IBSHIFT_MADE_TEXT] = "";
    uint32_t mbps = 0;

    if (NULL != own.adapter) {
        ibshift_verbs_kind(own.verbs, device, sizeof(device), &mbps);
        ibshift_verbs_firmware(own.verbs, firmware, sizeof(firmware));
    }
    return ibshift_choose_tuned(device, mbps, firmware);
}

static char *receive(uint32_t peer, size_t *size)
{
    opal_process_name_t name = {.jobid = OMPI_PROC_MY_NAME->jobid, .vpid = peer};
    char *received = NULL;
    int rc;

    OPAL_MODEX_RECV(rc, &mca_coll_ibshift_component.collm_version, &name, (void **)&received, size);
    return OPAL_SUCCESS == rc ? received : NULL;
}

static void publish(struct ibshift_card *card)
{
    const struct ibshift_exchange exchange = {opal_local_arch, receive, ibshift_params_differ};
    char bytes[IBSHIFT_CARD_MAX], agreed[1024];
    size_t size;
    int rc;

    card->values.params = ibshift_params_agreed(agreed, sizeof(agreed));
    size = ibshift_cards_open(&exchange, card, agreed, bytes);
    OPAL_MODEX_SEND(rc, IBSHIFT_MODEX_GLOBAL, &mca_coll_ibshift_component.collm_version, bytes,
                    size);
    (void)rc; /* without a card the others do not find this process, which is right then */
}

void ibshift_transport_open(ibshift_trace_t *(*open_trace)(void))
{
    struct ibshift_card card = {.error = own.why_not, .values = {.model = ibshift_choose_digest()}};
    uint32_t processors = 0;

    snprintf(own.why_not, sizeof(own.why_not), "host %s: coll_ibshift_native is 0",
             ompi_process_info.nodename);
    if (ibshift_params.native && !is_switched_off()) {
        processors = ibshift_processors_count(topology());
        ibshift_endpoint.is_crowded = (uint32_t)ompi_process_info.num_local_peers >= processors;
        open_engine(open_trace);
    }
    if (NULL != ibshift_endpoint.engine) {
        card.address = NULL == own.adapter ? NULL : ibshift_verbs_card(own.verbs, &card.size);
        card.node = NULL == own.node ? NULL : ibshift_net_node_card(own.node);
        card.processors = processors;
        card.is_crowded = ibshift_endpoint.is_crowded;
        card.is_software = NULL == own.adapter || ibshift_verbs_is_software(own.verbs);
        ibshift_fabric_file_open(NULL == own.adapter ? NULL : own.verbs);
        card.values.costs = find_costs();
    }
    card.values.fabric = ibshift_fabric_file.identity;
    card.is_to_be_said = own.is_to_be_said;
    publish(&card);
}

void ibshift_transport_close(void)
{
    if (NULL != ibshift_endpoint.engine) {
        ibshift_engine_free(ibshift_endpoint.engine);
    }
    if (NULL != ibshift_endpoint.net) {
        ibshift_net_destroy(ibshift_endpoint.net);
    }
    ibshift_endpoint = (struct ibshift_endpoint){.engine = NULL};
    own.adapter = own.node = NULL;
    if (NULL != cache.rcache) {
        (void)mca_rcache_base_module_destroy(cache.rcache);
        cache.rcache = NULL;
    }
    if (NULL != own.verbs) {
        ibshift_verbs_close(own.verbs);
        own.verbs = NULL;
    }
    ibshift_cards_forget();
    ibshift_fabric_file_close();
}

void ibshift_transport_counters(struct ibshift_transport_counters *counters)
{
    struct ibshift_engine *engine = ibshift_endpoint.engine;

    *counters = (struct ibshift_transport_counters){0};
    if (NULL != engine) {
        counters->engine = ibshift_engine_stats(engine);
        ibshift_engine_lock(engine);
        if (NULL != own.adapter) {
            ibshift_net_verbs_stats(own.adapter, &counters->net);
        }
        if (NULL != own.node) {
            ibshift_net_node_stats(own.node, &counters->node);
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

void ibshift_absent(const struct ompi_communicator_t *comm)
{
    struct ibshift_engine *engine = ibshift_endpoint.engine;
    uint32_t id;

    if (NULL != engine && ibshift_params.native && OMPI_COMM_IS_INTRA(comm) &&
        ibshift_comm_wire_id(comm, &id)) {
        ibshift_engine_enter(engine, id);
        ibshift_engine_give_up(engine, id, OMPI_PROC_MY_NAME->vpid, -ENOMEM);
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
