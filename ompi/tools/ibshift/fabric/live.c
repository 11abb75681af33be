/* The fabric that this machine is on, read from its own switches: nodes and cables by libibnetdisc, forwarding
 * tables and what else is asked by management datagrams, one after the other. */
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

enum { BLOCK = 64, TIMEOUT_MS = 1000, TRIES = 4, IN_FLIGHT = 16 /* of the discovery */ };

/* In a field of libibumad's size; NULL lets the library take the first with an active port. */
static char *device_name(const struct fabric_live *live, char name[UMAD_CA_NAME_LEN])
{
    snprintf(name, UMAD_CA_NAME_LEN, "%s", live->device != NULL ? live->device : "");
    return name[0] != '\0' ? name : NULL;
}

/* NULL: it does not open. */
static struct ibmad_port *open_port(const struct fabric_live *live, int tries)
{
    int classes[] = {IB_SMI_CLASS};
    char device[UMAD_CA_NAME_LEN];
    struct ibmad_port *port =
        mad_rpc_open_port(device_name(live, device), (int)live->port, classes, 1);

    if (port != NULL) {
        mad_rpc_set_retries(port, tries);
    }
    return port;
}

static void store(struct ibshift_fabric *f, uint32_t sw, unsigned block, const uint8_t *ports)
{
    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned lid = block * BLOCK + i;

        if (lid > 0 && lid <= IBSHIFT_LID_MAX && ports[i] <= f->nodes[f->switches[sw]].port_count) {
            ibshift_lft_set(f, sw, lid, ports[i]);
        }
    }
}

static int read_table(struct ibmad_port *port, struct ibshift_fabric *f, uint32_t sw, unsigned top,
                      struct ibshift_error *err)
{
    ib_portid_t to = {.lid = f->nodes[f->switches[sw]].lid};
    uint8_t ports[IB_SMP_DATA_SIZE];

    for (unsigned block = 0; block <= top / BLOCK; block++) {
        if (smp_query_via(ports, &to, IB_ATTR_LINEARFORWTBL, block, TIMEOUT_MS, port) == NULL) {
            return ibshift_fail(err, -ETIMEDOUT, "switch '%s' (LID %u) does not give its table",
                                ibshift_node_name(f, f->switches[sw]), (unsigned)to.lid);
        }
        store(f, sw, block, ports);
    }
    return 0;
}

static int fill_tables(const struct fabric_live *live, struct ibshift_fabric *f,
                       const unsigned *top, struct ibshift_error *err)
{
    struct ibmad_port *port = open_port(live, TRIES);
    int rc =
        port != NULL ? 0 : ibshift_fail(err, -EIO, "cannot open the port for management datagrams");

    for (uint32_t s = 0; rc == 0 && s < f->switch_count; s++) {
        rc = read_table(port, f, s, top[s], err);
        if (live->has_progress && rc == 0) {
            fprintf(stderr, "\rtables of %u of %u switches%s", s + 1, f->switch_count,
                    s + 1 == f->switch_count ? "\n" : "");
        }
    }
    if (port != NULL) {
        mad_rpc_close_port(port);
    }
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
    struct ibmad_port *port = open_port(live, 1);
    uint32_t count = 0;

    if (port == NULL) {
        return 0;
    }
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
    uint8_t data[IB_SMP_DATA_SIZE] = {0};
    ib_portid_t to = {.lid = facts->sm_lid};
    struct ibmad_port *port = open_port(live, TRIES);

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
