#include "coll_ibshift_call.h"
#include "coll_ibshift_cards.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_fabric_file.h"
#include "coll_ibshift_regcache.h"
#include "coll_ibshift_alltoall_order.h"
#include "coll_ibshift_trace.h"
#include "coll_ibshift_transport.h"

#include "ompi/group/group.h"
#include "opal/mca/hwloc/base/base.h"
#include "opal/runtime/opal_progress.h"

#include "net/by_peer.h"
#include "net/verbs/verbs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256, PEER_TEXT = 768, MOST_REPORTS = 32 };

static const uint64_t second = 1000000000;

static struct ibshift_verbs *verbs;
static struct ibshift_net *adapter_net, *node_net; /* NULL: none */
static struct ibshift_net *net;                    /* the two as one */
static struct ibshift_engine *engine;
static bool is_crowded;        /* this host has more ranks of the job than processors */
static char why_not[2 * LINE]; /* there is no engine */
static bool is_to_be_said; /* why_not: unasked; a host without a device is none of our business */

static void say(void *context, const char *line)
{
    ibshift_help("warning", ompi_process_info.nodename, line);
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

/* Has it got as far as to its collectives? */
static bool has_comm(void *context, uint32_t id)
{
    struct ompi_communicator_t *comm = ompi_comm_lookup(id);
    uint32_t its_id;

    return NULL != comm && NULL != comm->c_coll && ibshift_comm_wire_id(comm, &its_id) &&
           its_id == id && NULL != ibshift_module_of(comm);
}

static int open_adapter(char *error, size_t size)
{
    struct ibshift_verbs_options ports = {
        .ports = ibshift_params.device,
        .max_ports = ibshift_params.ports,
        .gid_index = ibshift_params.gid_index,
        .service_level = ibshift_params.service_level,
        .traffic_class = ibshift_params.traffic_class,
        .fork = -1,
        .topology = topology(),
    };
    struct ibshift_net_verbs_options options = ibshift_net_verbs_defaults;
    int rc = ibshift_verbs_open(&ports, &verbs, error, size);

    if (rc != 0) {
        return rc;
    }
    options.self = OMPI_PROC_MY_NAME->vpid;
    options.peers = ompi_process_info.num_procs;
    options.card = ibshift_card_copy;
    options.path = ibshift_fabric_path;
    options.say = say;
    options.has_comm = has_comm;
    options.has_ended = ibshift_process_has_ended;
    options.memory = ibshift_params.memory;
    options.max_eager = ibshift_params.eager_limit;
    options.timeout = ibshift_params.timeout;
    options.retry = ibshift_params.retry;
    options.cache = ibshift_regcache_open(verbs);
    fit_memory(&options);
    return ibshift_net_verbs_create(verbs, &options, &adapter_net, error, size);
}

/* Without it the ranks of a host talk over the adapter, or not natively. */
static void open_node(void)
{
    struct ibshift_node_options options = {.processes =
                                               (uint32_t)ompi_process_info.num_local_peers + 1,
                                           .place = (uint32_t)ompi_process_info.my_local_rank,
                                           .self = OMPI_PROC_MY_NAME->vpid,
                                           .memory = ibshift_params.node_memory,
                                           .may_copy = true,
                                           .card = ibshift_card_node,
                                           .has_comm = has_comm,
                                           .say = say};
    char error[LINE];

    if (!ibshift_params.node || options.processes < 2) {
        return;
    }
    if (0 != ibshift_net_node_create(&options, &node_net, error, sizeof(error))) {
        say(NULL, error);
    }
}

/* 0, or why there is no adapter; there may be a net all the same. */
static int open_net(char *error, size_t size)
{
    int rc = open_adapter(error, size);

    open_node();
    net = 0 != rc ? node_net : adapter_net;
    if (0 == rc && NULL != node_net) {
        net = ibshift_net_by_peer_create(node_net, adapter_net, ompi_process_info.num_procs,
                                         ibshift_card_is_near, NULL);
        if (NULL == net) { /* no memory: the adapter serves all */
            ibshift_net_destroy(node_net);
            node_net = NULL;
            net = adapter_net;
        }
    }
    return rc;
}

static void open_engine(void)
{
    struct ibshift_engine_options options = {
        .patience = second,
        .deadline = (uint64_t)ibshift_params.deadline * second,
    };
    char error[LINE] = "";
    int rc = open_net(error, sizeof(error));

    if (NULL != net) {
        options.trace = ibshift_trace_open();
        engine = ibshift_engine_create(net, &options);
    }
    if (0 == rc) {
        return;
    }
    snprintf(why_not, sizeof(why_not), "host %s: %s", ompi_process_info.nodename, error);
    is_to_be_said = -ENODEV != rc || '\0' != ibshift_params.device[0];
    if (is_to_be_said) {
        if (-EINVAL == rc || -ENODEV == rc) {
            ibshift_help_once_a_job("bad-device", why_not);
        } else {
            ibshift_help_once_a_job("no-endpoint", why_not);
        }
    }
}

static int progress(void)
{
    ibshift_calls_look_away();
    return ibshift_engine_progress(engine);
}

void ibshift_transport_open(void)
{
    const void *card = NULL;
    struct ibshift_card_values values = {.model = ibshift_choose_digest()};
    char agreed[LINE * 4];
    struct ibshift_card_place place = {.processors = 0};
    size_t size = 0;

    snprintf(why_not, sizeof(why_not), "host %s: coll_ibshift_native is 0",
             ompi_process_info.nodename);
    if (ibshift_params.native) {
        open_engine();
    }
    if (NULL != engine) {
        opal_progress_register(progress);
        card = NULL == adapter_net ? NULL : ibshift_verbs_card(verbs, &size);
        place.process = ibshift_process_self();
        place.processors = ibshift_processors_count(topology());
        is_crowded = (uint32_t)ompi_process_info.num_local_peers >= place.processors;
        place.is_software = NULL == adapter_net || ibshift_verbs_is_software(verbs);
        ibshift_fabric_file_open();
    }
    values.fabric = ibshift_fabric_file_id();
    values.params = ibshift_params_agreed(agreed, sizeof(agreed));
    ibshift_card_publish(card, size, NULL == node_net ? NULL : ibshift_net_node_card(node_net),
                         &values, agreed, &place, why_not, is_to_be_said);
}

void ibshift_transport_close(void)
{
    if (NULL != engine) {
        opal_progress_unregister(progress);
        ibshift_engine_free(engine);
        engine = NULL;
    }
    ibshift_trace_close();
    if (NULL != net) {
        ibshift_net_destroy(net);
        net = adapter_net = node_net = NULL;
    }
    ibshift_regcache_close();
    if (NULL != verbs) {
        ibshift_verbs_close(verbs);
        verbs = NULL;
    }
    ibshift_cards_forget();
    ibshift_comm_order_forget();
    ibshift_fabric_file_close();
}

struct ibshift_engine *ibshift_transport_engine(void)
{
    return engine;
}

bool ibshift_transport_is_crowded(void)
{
    return is_crowded;
}

void ibshift_transport_counters(struct ibshift_transport_counters *counters)
{
    *counters = (struct ibshift_transport_counters){0};
    if (NULL != engine) {
        counters->engine = ibshift_engine_stats(engine);
        ibshift_engine_lock(engine);
        if (NULL != adapter_net) {
            ibshift_net_verbs_stats(adapter_net, &counters->net);
        }
        if (NULL != node_net) {
            ibshift_net_node_stats(node_net, &counters->node);
        }
        counters->regcache = ibshift_regcache_stats();
        ibshift_engine_unlock(engine);
    }
}

/* Once a job: of all its processes, by the first. */
static void report_absent(struct ompi_communicator_t *comm)
{
    char text[2 * LINE], first[2 * LINE] = "";
    uint32_t count = 0, first_rank = 0, size = (uint32_t)ompi_comm_size(comm);

    for (uint32_t i = 0; i < size; i++) {
        if (!ibshift_card_is_there(i) && ibshift_card_complaint(i, text, sizeof(text)) &&
            0 == count++) {
            first_rank = i;
            memcpy(first, text, sizeof(first));
        }
    }
    if (count > 0) {
        ibshift_help_once_a_job("unlike", count, size, first_rank, first);
    }
}

/* Over the adapters of all of them, or in the memory of the one host that they are all on. */
static bool can_reach_each_other(const struct ompi_communicator_t *comm)
{
    bool have_adapters = true, share_memory = true;
    uint64_t node = 0;

    for (int i = 0; i < ompi_group_size(comm->c_local_group); i++) {
        opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, i);
        struct ibshift_card_place place;

        /* Another job (spawned, connected) has other numbers for its processes. */
        if (name.jobid != OMPI_PROC_MY_NAME->jobid || !ibshift_card_is_there(name.vpid)) {
            return false;
        }
        place = ibshift_card_place(name.vpid);
        node = 0 == i ? place.node : node;
        have_adapters &= place.has_adapter;
        share_memory &= 0 != place.node && place.node == node;
    }
    return have_adapters || share_memory;
}

void ibshift_transport_why_not(struct ompi_communicator_t *comm, char *text, size_t size)
{
    char complaint[2 * LINE];
    uint32_t rank = 0, ranks = (uint32_t)ompi_comm_size(comm);

    if (ranks < 2) {
        snprintf(text, size, "a process alone has nobody to talk to");
        return;
    }
    while (rank + 1 < ranks && ibshift_card_is_there(rank) &&
           ibshift_card_place(rank).has_adapter) {
        rank++;
    }
    (void)ibshift_card_complaint(rank, complaint, sizeof(complaint));
    snprintf(text, size, "rank %u: %s", rank, complaint);
}

uint32_t *ibshift_transport_peers(struct ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm);
    uint32_t *peers;

    if (!can_reach_each_other(comm)) {
        if (NULL != engine && comm == &ompi_mpi_comm_world.comm && 0 == OMPI_PROC_MY_NAME->vpid) {
            report_absent(comm);
        }
        return NULL;
    }
    peers = malloc((size_t)size * sizeof(uint32_t));
    for (int i = 0; NULL != peers && i < size; i++) {
        peers[i] = ompi_group_get_proc_name(comm->c_local_group, i).vpid;
    }
    return peers;
}

/* A dead peer fails every collective with it: it is told of once, not each time. */
static bool is_news(uint32_t peer, int status)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers told and count */
    static struct {
        uint32_t peer;
        int status;
    } told[MOST_REPORTS];
    static int count;
    bool is_known = false;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        is_known |= told[i].peer == peer && told[i].status == status;
    }
    is_known |= count == MOST_REPORTS;
    if (!is_known) {
        told[count].peer = peer;
        told[count++].status = status;
    }
    pthread_mutex_unlock(&lock);
    return !is_known;
}

static const char *cause_text(int status)
{
    switch (status) {
    case -ETIME:
        return "no message moved within the seconds of coll_ibshift_deadline: it is late, stopped, "
               "has died before it was connected, or called something else";
    case -ETIMEDOUT:
        return "it does not answer: it has died, is stopped, or a link on the way is down";
    case -EHOSTUNREACH:
        return "it cannot be reached";
    case -ECONNRESET:
        return "the connection to it broke";
    case -ECONNABORTED:
        return "it has given this collective up; its own message says why";
    case -ENOMEM:
        return "memory could not be had or registered";
    default:
        return strerror(-status);
    }
}

static uint32_t name_of(const struct ibshift_op *op, uint32_t rank)
{
    return NULL == op->params.names ? rank : op->params.names[rank];
}

static int code_of(int status)
{
    switch (status) {
    case -ENOMEM:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case -EMSGSIZE:
        return MPI_ERR_TRUNCATE;
    default:
        return MPI_ERR_OTHER;
    }
}

int ibshift_transport_report(struct ompi_communicator_t *comm, const struct ibshift_op *op,
                             const char *collective)
{
    uint32_t peer = ibshift_op_peer(op, op->failed_rank);
    char text[PEER_TEXT] = "(this rank itself)", key[IBSHIFT_CALL_KEY];

    if (op->failed_rank != op->params.rank) {
        ibshift_net_describe(net, peer, text, sizeof(text));
    }
    if (!is_news(peer, op->status)) {
        return code_of(op->status);
    }
    if (-EMSGSIZE == op->status) {
        ibshift_call_key(op, key, sizeof(key));
        ibshift_help("collective-mismatch", collective, comm->c_name, key,
                     ompi_process_info.nodename, name_of(op, op->params.rank),
                     name_of(op, op->failed_rank), text);
    } else if (-ECONNABORTED == op->status) {
        ibshift_help("collective-given-up", collective, comm->c_name, ompi_process_info.nodename,
                     name_of(op, op->params.rank), name_of(op, op->failed_rank),
                     cause_text(op->status), text);
    } else {
        ibshift_help("collective-failed", collective, comm->c_name, ompi_process_info.nodename,
                     name_of(op, op->params.rank), name_of(op, op->failed_rank),
                     cause_text(op->status), text);
    }
    return code_of(op->status);
}
