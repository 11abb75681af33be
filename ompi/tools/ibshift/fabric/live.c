/*
 * The fabric that this machine is on, read from its own switches: nodes and cables by libibnetdisc,
 * forwarding tables by management datagrams of our own. Many of these are under way at once, since
 * a large fabric has thousands of blocks of 64 LIDs; one that is lost is sent again, three times at
 * most.
 */
#include "fabric/live.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ibnetdisc.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/graph/rate.h"
#include "pool.h"

enum {
    BLOCK = 64,
    TIMEOUT_MS = 1000,
    TRIES = 4,
    IN_FLIGHT = 16, /* MADs sent and not yet answered, at most */
};

struct request {
    uint32_t sw;
    uint16_t block;
    uint8_t tries;
    bool is_done;
};

struct reader {
    const struct fabric_live *live;
    struct ibshift_fabric *f;
    int port, agent;
    struct request *requests;
    uint32_t count, next, done, flying;
    uint32_t *again; /* requests to repeat */
    uint32_t again_count;
    void *umad;
};

/* Redraws "what: 12 of 80" in place; the last call ends the line. */
static void show_progress(const struct fabric_live *live, const char *what, uint64_t done,
                          uint64_t all)
{
    const unsigned width = 40;
    unsigned filled = all == 0 ? width : (unsigned)(done * width / all);

    if (live->has_progress && (done == all || done % 64 == 0)) {
        fprintf(stderr, "\r%-8s [%-*.*s] %" PRIu64 " of %" PRIu64 "%s", what, (int)width,
                (int)filled, "########################################", done, all,
                done == all ? "\n" : "");
    }
}

/* In a field of libibumad's size; NULL lets the library take the first with an active port. */
static char *device_name(const struct fabric_live *live, char name[UMAD_CA_NAME_LEN])
{
    snprintf(name, UMAD_CA_NAME_LEN, "%s", live->device != NULL ? live->device : "");
    return name[0] != '\0' ? name : NULL;
}

static void make_requests(struct reader *r, struct pool *pool, const unsigned *top)
{
    uint64_t count = 0;

    for (uint32_t s = 0; s < r->f->switch_count; s++) {
        count += top[s] / BLOCK + 1;
    }
    r->requests = pool_new(pool, count, sizeof(*r->requests));
    r->again = pool_new(pool, count, sizeof(*r->again));
    r->umad = pool_new(pool, 1, umad_size() + IB_MAD_SIZE);
    for (uint32_t s = 0; s < r->f->switch_count; s++) {
        for (unsigned block = 0; block <= top[s] / BLOCK; block++) {
            r->requests[r->count++] = (struct request){.sw = s, .block = (uint16_t)block};
        }
    }
}

static int send_request(struct reader *r, uint32_t index, struct ibshift_error *err)
{
    struct request *request = &r->requests[index];
    const struct ibshift_node *node = &r->f->nodes[r->f->switches[request->sw]];
    ib_portid_t to = {.lid = node->lid};
    ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
                    .method = IB_MAD_METHOD_GET,
                    .attr = {.id = IB_ATTR_LINEARFORWTBL, .mod = request->block},
                    .dataoffs = IB_SMP_DATA_OFFS,
                    .datasz = IB_SMP_DATA_SIZE,
                    .trid = (uint64_t)index + 1,
                    .timeout = TIMEOUT_MS};

    memset(r->umad, 0, umad_size() + IB_MAD_SIZE);
    if (mad_build_pkt(r->umad, &rpc, &to, NULL, NULL) < 0 ||
        umad_send(r->port, r->agent, r->umad, IB_MAD_SIZE, TIMEOUT_MS, 0) < 0) {
        return ibshift_fail(err, -EIO, "cannot send to switch '%s': %s",
                            ibshift_node_name(r->f, r->f->switches[request->sw]), strerror(errno));
    }
    request->tries++;
    r->flying++;
    return 0;
}

static void store(struct reader *r, const struct request *request, const uint8_t *ports)
{
    const struct ibshift_node *node = &r->f->nodes[r->f->switches[request->sw]];

    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned lid = request->block * BLOCK + i;

        if (lid > 0 && lid <= IBSHIFT_LID_MAX && ports[i] <= node->port_count) {
            ibshift_lft_set(r->f, request->sw, lid, ports[i]);
        }
    }
}

static int give_up(const struct reader *r, const struct request *request, struct ibshift_error *err)
{
    const struct ibshift_node *node = &r->f->nodes[r->f->switches[request->sw]];

    return ibshift_fail(err, -ETIMEDOUT, "switch '%s' (LID %u) does not give its table",
                        ibshift_node_name(r->f, r->f->switches[request->sw]), node->lid);
}

/* One answer, or a MAD that came back as timed out. */
static int take_answer(struct reader *r, struct ibshift_error *err)
{
    int length = IB_MAD_SIZE, agent = umad_recv(r->port, r->umad, &length, 2 * TIMEOUT_MS);
    uint8_t *mad = umad_get_mad(r->umad);
    struct request *request;
    uint32_t index;

    if (agent < 0) {
        return ibshift_fail(err, -ETIMEDOUT, "the fabric stopped answering: %s", strerror(-agent));
    }
    index =
        (uint32_t)mad_get_field64(mad, 0, IB_MAD_TRID_F) - 1; /* the kernel owns the upper half */
    if (agent != r->agent || index >= r->count || r->requests[index].is_done) {
        return 0;
    }
    request = &r->requests[index];
    r->flying--;
    if (umad_status(r->umad) != 0 || mad_get_field(mad, 0, IB_MAD_STATUS_F) != 0) {
        if (request->tries == TRIES) {
            return give_up(r, request, err);
        }
        r->again[r->again_count++] = index;
        return 0;
    }
    request->is_done = true;
    store(r, request, mad + IB_SMP_DATA_OFFS);
    r->done++;
    show_progress(r->live, "tables", r->done, r->count);
    return 0;
}

static int read_all(struct reader *r, struct ibshift_error *err)
{
    int rc = 0;

    while (rc == 0 && r->done < r->count) {
        while (rc == 0 && r->flying < IN_FLIGHT && (r->again_count > 0 || r->next < r->count)) {
            rc = send_request(r, r->again_count > 0 ? r->again[--r->again_count] : r->next++, err);
        }
        if (rc == 0) {
            rc = take_answer(r, err);
        }
    }
    return rc;
}

static int open_port(struct reader *r, struct ibshift_error *err)
{
    char device[UMAD_CA_NAME_LEN];

    r->port = umad_open_port(device_name(r->live, device), (int)r->live->port);
    r->agent = r->port < 0 ? -1 : umad_register(r->port, IB_SMI_CLASS, 1, 0, NULL);
    return r->agent < 0 ? ibshift_fail(err, -EIO, "cannot open the port for management datagrams")
                        : 0;
}

static int fill_tables(const struct fabric_live *live, struct ibshift_fabric *f,
                       const unsigned *top, struct ibshift_error *err)
{
    struct reader r = {.live = live, .f = f, .port = -1, .agent = -1};
    struct pool pool = {NULL};
    int rc = open_port(&r, err);

    if (rc == 0) {
        make_requests(&r, &pool, top);
        rc = read_all(&r, err);
    }
    if (r.agent >= 0) {
        umad_unregister(r.port, r.agent);
    }
    if (r.port >= 0) {
        umad_close_port(r.port);
    }
    pool_free(&pool);
    return rc;
}

/*
 * Is adaptive routing on? Only the vendor's own attribute of a switch says so: AdaptiveRoutingInfo,
 * whose lowest bit of the first word is the switch's "enabled". Other vendors' switches, and those
 * that do not know the attribute, are taken as static.
 */

enum {
    ADAPTIVE_ATTRIBUTE = 0xFF20,
    ADAPTIVE_VENDOR = 0x2C9, /* Mellanox */
    ADAPTIVE_TIMEOUT_MS = 200,
};

static bool is_asked(const ibnd_node_t *node)
{
    return node->type == IB_NODE_SWITCH &&
           mad_get_field((void *)(uintptr_t)node->info, 0, IB_NODE_VENDORID_F) == ADAPTIVE_VENDOR;
}

/* 1: on, 0: off or not known there. */
static int ask(struct ibmad_port *port, const ibnd_node_t *node)
{
    uint8_t data[IB_SMP_DATA_SIZE] = {0};
    ib_portid_t to = {.lid = node->smalid};

    return smp_query_via(data, &to, ADAPTIVE_ATTRIBUTE, 0, ADAPTIVE_TIMEOUT_MS, port) != NULL
               ? data[3] & 1
               : 0;
}

static uint32_t count_adaptive(const struct fabric_live *live, const ibnd_fabric_t *found)
{
    int classes[] = {IB_SMI_CLASS};
    char device[UMAD_CA_NAME_LEN];
    struct ibmad_port *port =
        mad_rpc_open_port(device_name(live, device), (int)live->port, classes, 1);
    uint32_t count = 0;

    if (port == NULL) {
        return 0;
    }
    mad_rpc_set_retries(port, 1);
    for (const ibnd_node_t *node = found->nodes; node != NULL; node = node->next) {
        count += is_asked(node) ? (uint32_t)ask(port, node) : 0;
    }
    mad_rpc_close_port(port);
    return count;
}

/* What the port runs at. */
static struct ibshift_rate rate_of(ibnd_port_t *port)
{
    static const struct {
        uint32_t bit, value;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speeds[] = {{1, 2500}, {2, 5000}, {4, 10000}},
      extended[] = {{1, 14062}, {2, 25781}, {4, 53125}, {8, 106250}};
    uint32_t width = mad_get_field(port->info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F);
    uint32_t speed = mad_get_field(port->info, 0, IB_PORT_LINK_SPEED_ACTIVE_F);
    uint32_t faster = mad_get_field(port->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F);
    uint32_t lanes = 0, lane = 0;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        lanes = widths[i].bit == width ? widths[i].value : lanes;
    }
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        lane = speeds[i].bit == speed ? speeds[i].value : lane;
    }
    for (size_t i = 0; i < sizeof(extended) / sizeof(extended[0]); i++) {
        lane = extended[i].bit == faster ? extended[i].value : lane;
    }
    return ibshift_rate_of_lanes(lanes, lane);
}

static enum ibshift_node_kind kind_of(const ibnd_node_t *node)
{
    if (node->type == IB_NODE_SWITCH) {
        return IBSHIFT_NODE_SWITCH;
    }
    return node->type == IB_NODE_CA && !ibshift_is_aggregation_node(node->nodedesc)
               ? IBSHIFT_NODE_HCA
               : IBSHIFT_NODE_OTHER;
}

/* An HCA has ports on several subnets at times: those that were not reached have no LID. */
static int add_port(struct ibshift_fabric *f, uint32_t n, ibnd_port_t *port,
                    struct ibshift_error *err)
{
    int rc;

    if (port == NULL || port->portnum < 1 || port->portnum > f->nodes[n].port_count ||
        ibshift_node_is_switch(f, n)) {
        return 0;
    }
    rc = ibshift_fabric_set_port_guid(f, ibshift_node_port(f, n, (unsigned)port->portnum),
                                      port->guid);
    if (rc != 0) {
        return ibshift_fail(err, rc, "port GUID 0x%" PRIx64 " appears twice", port->guid);
    }
    return port->base_lid == 0 ? 0
                               : ibshift_fabric_set_lid(f, n, (unsigned)port->portnum,
                                                        port->base_lid, port->lmc, err);
}

static int add_node(struct ibshift_fabric *f, ibnd_node_t *node, struct ibshift_error *err)
{
    int64_t n = ibshift_fabric_add_node(f, kind_of(node), node->guid, node->nodedesc,
                                        (unsigned)node->numports, err);
    int rc = n < 0 ? (int)n : 0;

    if (rc == 0 && node->type == IB_NODE_SWITCH && node->smalid != 0) {
        rc = ibshift_fabric_set_lid(f, (uint32_t)n, 0, node->smalid, node->smalmc, err);
    }
    for (int p = 1; rc == 0 && p <= node->numports; p++) {
        rc = add_port(f, (uint32_t)n, node->ports[p], err);
    }
    return rc;
}

static int add_cables(struct ibshift_fabric *f, ibnd_node_t *node, struct ibshift_error *err)
{
    uint32_t n = ibshift_fabric_find_guid(f, node->guid);
    int rc = 0;

    for (int p = 1; rc == 0 && p <= node->numports; p++) {
        ibnd_port_t *port = node->ports[p], *remote = port == NULL ? NULL : port->remoteport;
        uint32_t peer =
            remote == NULL ? IBSHIFT_NO_NODE : ibshift_fabric_find_guid(f, remote->node->guid);

        if (peer != IBSHIFT_NO_NODE && remote->portnum >= 1 &&
            remote->portnum <= f->nodes[peer].port_count) {
            rc = ibshift_fabric_add_link(f, ibshift_node_port(f, n, (unsigned)p),
                                         ibshift_node_port(f, peer, (unsigned)remote->portnum),
                                         rate_of(port), err);
        }
    }
    return rc;
}

/* Tables read from top[] of each switch: its highest LID in use. */
static int read_tables(const struct fabric_live *live, struct ibshift_fabric *f,
                       ibnd_fabric_t *found, struct ibshift_error *err)
{
    unsigned *top = calloc((size_t)f->switch_count + 1, sizeof(*top));
    int rc =
        top == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : ibshift_fabric_tables_new(f, err);

    for (ibnd_node_t *node = found->nodes; rc == 0 && node != NULL; node = node->next) {
        uint32_t n = ibshift_fabric_find_guid(f, node->guid);

        if (node->type == IB_NODE_SWITCH) {
            unsigned highest = mad_get_field(node->switchinfo, 0, IB_SW_LINEAR_FDB_TOP_F);

            top[f->nodes[n].switch_index] = highest < IBSHIFT_LID_MAX ? highest : IBSHIFT_LID_MAX;
        }
    }
    if (rc == 0) {
        rc = fill_tables(live, f, top, err);
    }
    free(top);
    return rc;
}

static int convert(const struct fabric_live *live, ibnd_fabric_t *found, struct ibshift_fabric *f,
                   struct ibshift_error *err)
{
    int rc = 0;

    for (ibnd_node_t *node = found->nodes; rc == 0 && node != NULL; node = node->next) {
        rc = add_node(f, node, err);
    }
    for (ibnd_node_t *node = found->nodes; rc == 0 && node != NULL; node = node->next) {
        rc = add_cables(f, node, err);
    }
    if (rc == 0) {
        rc = ibshift_fabric_finish(f, err);
    }
    if (rc == 0) {
        rc = read_tables(live, f, found, err);
    }
    if (rc == 0) {
        ibshift_fabric_tables_finish(f);
        f->is_adaptive = count_adaptive(live, found) > 0;
    }
    return rc;
}

/* The libraries would say it at length. */
static bool has_datagrams(void)
{
    int fd = open("/sys/class/infiniband_mad/abi_version", O_RDONLY | O_CLOEXEC);

    return fd >= 0 && close(fd) == 0;
}

static int say_no_answer(struct ibshift_error *err)
{
    return ibshift_fail(
        err, -ENODEV,
        "no answer from the fabric: is there an active InfiniBand port, and may this "
        "user open /dev/infiniband/umad*? (usually root only: an administrator "
        "makes the file once)");
}

int fabric_live_read(const struct fabric_live *live, struct ibshift_fabric **fabric,
                     struct ibshift_error *err)
{
    struct ibnd_config config = {.max_smps = IN_FLIGHT};
    char *device;
    ibnd_fabric_t *found;
    struct ibshift_fabric *f;
    int rc;

    if (!has_datagrams()) {
        return say_no_answer(err);
    }
    device = live->device == NULL ? NULL : strdup(live->device);
    f = ibshift_fabric_new();
    if (live->has_progress) {
        fputs("nodes ...\n", stderr);
    }
    found = f == NULL ? NULL : ibnd_discover_fabric(device, (int)live->port, NULL, &config);
    free(device);
    if (found == NULL) {
        ibshift_fabric_free(f);
        return say_no_answer(err);
    }
    rc = convert(live, found, f, err);
    ibnd_destroy_fabric(found);
    if (rc != 0) {
        ibshift_fabric_free(f);
        return rc;
    }
    *fabric = f;
    return 0;
}

/* SMInfo has the manager's GUID, and the count of what it has done. */
static void ask_manager(const struct fabric_live *live, struct fabric_facts *facts)
{
    int classes[] = {IB_SMI_CLASS};
    uint8_t data[IB_SMP_DATA_SIZE] = {0};
    char device[UMAD_CA_NAME_LEN];
    ib_portid_t to = {.lid = facts->sm_lid};
    struct ibmad_port *port =
        mad_rpc_open_port(device_name(live, device), (int)live->port, classes, 1);

    if (port == NULL) {
        return;
    }
    if (smp_query_via(data, &to, IB_ATTR_SMINFO, 0, TIMEOUT_MS, port) != NULL) {
        facts->sm_guid = mad_get_field64(data, 0, IB_SMINFO_GUID_F);
        facts->activity = mad_get_field(data, 0, IB_SMINFO_ACT_F);
    }
    mad_rpc_close_port(port);
}

void fabric_live_facts(const struct fabric_live *live, struct fabric_facts *facts)
{
    char device[UMAD_CA_NAME_LEN];
    umad_port_t port;

    if (umad_get_port(device_name(live, device), (int)live->port, &port) != 0) {
        return;
    }
    facts->subnet_prefix = be64toh(port.gid_prefix);
    facts->sm_lid = (uint16_t)port.sm_lid;
    umad_release_port(&port);
    if (facts->sm_lid != 0) {
        ask_manager(live, facts);
    }
}
