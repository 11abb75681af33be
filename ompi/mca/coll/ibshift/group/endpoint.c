#include "group/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choose/tuned.h"
#include "group/choose.h"
#include "group/order.h"
#include "job/params.h"
#include "job/say.h"
#include "job/site.h"
#include "net/by_peer.h"

enum { LINE = 256 };

static const uint64_t second = 1000000000;

struct ibshift_endpoint ibshift_endpoint;

static struct {
    const struct ibshift_launch *launch;
    char why_not[2 * LINE]; /* there is no adapter */
    bool is_to_be_said;     /* why_not: unasked; a host without a device is none of our business */
} own;

static void say(void *context, const char *line)
{
    ibshift_help_once_a_host("warning", ibshift_teller_host(), line);
}

static bool has_ended(void *context, uint32_t comm, uint32_t seq)
{
    const struct ibshift_ledger *ledger = own.launch->comms.ledger(context, comm);

    return ledger != NULL && ibshift_ledger_is_past(ledger, seq) &&
           !ibshift_engine_runs(ibshift_endpoint.engine, comm, ibshift_number_is_until, seq);
}

static struct ibshift_net_comms comms_of_launch(void)
{
    struct ibshift_net_comms comms = own.launch->comms;

    comms.has_ended = has_ended;
    return comms;
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

static int open_adapter(char *error, size_t size)
{
    struct ibshift_verbs_options ports = {
        .ports = ibshift_params.device,
        .max_ports = ibshift_params.ports,
        .gid_index = ibshift_params.gid_index,
        .service_level = ibshift_params.service_level < 0 ? 0 : ibshift_params.service_level,
        .traffic_class = ibshift_params.traffic_class,
        .pkey = ibshift_params.pkey,
        .survives_fork = true,
        .topology = own.launch->topology,
    };
    struct ibshift_net_verbs_options options = ibshift_net_verbs_defaults;
    int rc = ibshift_verbs_open(&ports, &ibshift_endpoint.verbs, error, size);

    if (rc != 0) {
        return rc;
    }
    options.self = own.launch->self;
    options.peers = own.launch->processes;
    options.card = ibshift_card_copy;
    options.path = ibshift_fabric_path;
    options.service_level = ibshift_params.service_level < 0 ? ibshift_fabric_service_level : NULL;
    options.say = say;
    options.comms = comms_of_launch();
    options.has_ended = ibshift_card_has_ended;
    options.memory = ibshift_params.memory;
    options.max_eager = ibshift_params.eager_limit;
    options.timeout = ibshift_params.timeout;
    options.retry = ibshift_params.retry;
    options.is_tolerant = own.launch->is_tolerant;
    options.adaptive = ibshift_params.adaptive_data;
    options.cache =
        own.launch->open_cache == NULL ? NULL : own.launch->open_cache(ibshift_endpoint.verbs);
    ibshift_endpoint.finds_again =
        options.cache != NULL && !options.is_tolerant ? options.cache->finds_again : NULL;
    fit_memory(&options);
    rc = ibshift_net_verbs_create(ibshift_endpoint.verbs, &options, &ibshift_endpoint.adapter,
                                  error, size);
    if (rc == 0 && error[0] != '\0') {
        say(NULL, error);
    }
    return rc;
}

/* Without it the ranks of a host talk over the adapter, or not natively. */
static void open_node(char *error, size_t size)
{
    struct ibshift_node_options options = {
        .processes = own.launch->near,
        .place = own.launch->place,
        .job = own.launch->job,
        .self = own.launch->self,
        .memory = ibshift_params.node_memory,
        .may_copy = true,
        .is_gauged = !ibshift_endpoint.is_crowded, /* there an answer costs a turn, too */
        .looks = ibshift_endpoint.is_crowded ? IBSHIFT_NODE_LOOKS_CROWDED : IBSHIFT_NODE_LOOKS,
        .card = ibshift_card_node,
        .comms = comms_of_launch(),
        .say = say};

    if (!ibshift_params.node || options.processes < 2) {
        return;
    }
    if (ibshift_net_node_create(&options, &ibshift_endpoint.node, error, size) != 0) {
        say(NULL, error);
    }
}

/* There is no device, and none was asked for. */
static bool is_unasked(int rc)
{
    return rc == -ENODEV && ibshift_params.device[0] == '\0';
}

/* 0, or why there is no adapter; there may be a net all the same. */
static int open_net(char *error, size_t size)
{
    int rc = open_adapter(error, size);
    char no_memory[LINE] = "";

    open_node(no_memory, sizeof(no_memory));
    if (is_unasked(rc) && no_memory[0] != '\0') {
        snprintf(error, size, "%s", no_memory); /* such a host is served by its memory, or not */
    }
    ibshift_endpoint.net = rc != 0 ? ibshift_endpoint.node : ibshift_endpoint.adapter;
    if (rc == 0 && ibshift_endpoint.node != NULL) {
        ibshift_endpoint.net =
            ibshift_net_by_peer_create(ibshift_endpoint.node, ibshift_endpoint.adapter,
                                       own.launch->processes, ibshift_card_is_near, NULL);
        if (ibshift_endpoint.net == NULL) { /* no memory: the adapter serves all */
            ibshift_net_destroy(ibshift_endpoint.node);
            ibshift_endpoint.node = NULL;
            ibshift_endpoint.net = ibshift_endpoint.adapter;
        }
    }
    return rc;
}

static void open_engine(void)
{
    struct ibshift_engine_options options = {
        .patience = second,
        .deadline = (uint64_t)ibshift_params.deadline * second,
        .has_threads = own.launch->has_threads,
    };
    char error[LINE] = "";
    int rc = open_net(error, sizeof(error));

    if (ibshift_endpoint.net != NULL) {
        options.trace = own.launch->open_trace == NULL ? NULL : own.launch->open_trace();
        ibshift_endpoint.engine = ibshift_engine_create(ibshift_endpoint.net, &options);
    }
    if (rc == 0) {
        return;
    }
    snprintf(own.why_not, sizeof(own.why_not), "host %s: %s", ibshift_teller_host(), error);
    own.is_to_be_said = !is_unasked(rc);
    if (own.is_to_be_said) {
        if (rc == -EINVAL || rc == -ENODEV) {
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

    if (!ibshift_site_switched_off(why, sizeof(why))) {
        return false;
    }
    ibshift_make_plain(why);
    snprintf(own.why_not, sizeof(own.why_not), "host %s: %s", ibshift_teller_host(), why);
    return true;
}

static uint64_t find_costs(void)
{
    const int *release = own.launch->release;
    struct ibshift_made made;
    char device[IBSHIFT_MADE_TEXT] = "memory", firmware[IBSHIFT_MADE_TEXT] = "";
    uint32_t mbps = 0;

    if (release[0] == 0) {
        return 0;
    }
    if (ibshift_endpoint.adapter != NULL) {
        ibshift_verbs_kind(ibshift_endpoint.verbs, device, sizeof(device), &mbps);
        ibshift_verbs_firmware(ibshift_endpoint.verbs, firmware, sizeof(firmware));
    }
    made = ibshift_tuned_made(device, firmware, mbps, release[0], release[1], release[2]);
    return ibshift_choose_tuned(&made);
}

size_t ibshift_endpoint_open(const struct ibshift_launch *launch, char bytes[IBSHIFT_CARD_MAX])
{
    struct ibshift_card card = {.error = own.why_not};
    uint32_t processors = 0;
    char agreed[1024];

    own.launch = launch;
    snprintf(own.why_not, sizeof(own.why_not), "host %s: coll_ibshift_native is 0",
             ibshift_teller_host());
    if (ibshift_params.native && !is_switched_off()) {
        processors = ibshift_processors_count(launch->topology);
        ibshift_endpoint.is_crowded = launch->near > processors;
        open_engine();
    }
    if (ibshift_endpoint.engine != NULL) {
        struct ibshift_verbs *verbs =
            ibshift_endpoint.adapter == NULL ? NULL : ibshift_endpoint.verbs;

        card.address = verbs == NULL ? NULL : ibshift_verbs_card(verbs, &card.size);
        card.node =
            ibshift_endpoint.node == NULL ? NULL : ibshift_net_node_card(ibshift_endpoint.node);
        card.processors = processors;
        card.is_crowded = ibshift_endpoint.is_crowded;
        card.is_software = verbs == NULL || ibshift_verbs_is_software(verbs);
        ibshift_fabric_file_open(verbs, launch->processes);
        card.values.costs = find_costs();
    }
    card.values.model = ibshift_choose_digest();
    card.values.fabric = ibshift_fabric_file.identity;
    card.values.params = ibshift_params_agreed(agreed, sizeof(agreed));
    card.is_to_be_said = own.is_to_be_said;
    return ibshift_cards_open(&launch->exchange, &card, agreed, bytes);
}

void ibshift_endpoint_close(void)
{
    if (ibshift_endpoint.engine != NULL) {
        ibshift_engine_free(ibshift_endpoint.engine);
    }
    if (ibshift_endpoint.net != NULL) {
        ibshift_net_destroy(ibshift_endpoint.net);
    }
    if (own.launch != NULL && own.launch->close_cache != NULL) {
        own.launch->close_cache();
    }
    if (ibshift_endpoint.verbs != NULL) {
        ibshift_verbs_close(ibshift_endpoint.verbs);
    }
    ibshift_endpoint = (struct ibshift_endpoint){.engine = NULL};
    ibshift_cards_forget();
    ibshift_fabric_file_close();
    memset(&own, 0, sizeof(own)); /* the launch ends, too */
}
