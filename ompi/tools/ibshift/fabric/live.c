#include "fabric/live.h"
#include "fabric/graph/rate.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/ibnetdisc.h>
#include <infiniband/mad.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fabric_live_progress(const struct fabric_live *live, const char *what, uint64_t done,
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
        rc = fabric_live_tables(live, f, top, err);
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
        f->is_adaptive = fabric_live_adaptive(live, found) > 0;
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
    struct ibnd_config config = {.max_smps = live->in_flight < 32 ? live->in_flight : 32};
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
    found = f == NULL ? NULL : ibnd_discover_fabric(device, live->port, NULL, &config);
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
