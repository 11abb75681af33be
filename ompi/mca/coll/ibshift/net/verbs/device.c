/* Which devices there are, and which of their ports this process uses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/device.h"
#include "net/verbs/gid.h"
#include "net/verbs/find.h"

enum { CANDIDATES_MAX = 256, GIDS_MAX = 1024 };

static uint32_t rate_of(const struct ibv_port_attr *attr)
{
    static const struct {
        uint8_t code;
        uint32_t value;
    } speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                  {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}},
      widths[] = {{1, 1}, {16, 2}, {2, 4}, {4, 8}, {8, 12}};
    uint32_t speed = 0, width = 0;

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        speed = speeds[i].code == attr->active_speed ? speeds[i].value : speed;
    }
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        width = widths[i].code == attr->active_width ? widths[i].value : width;
    }
    return speed * width;
}

/* Fills in one port of an open device; devices that carry no InfiniBand transport are left out. */
static int look_at_port(struct ibv_context *context, uint8_t number, uint32_t distance,
                        struct ibshift_port_candidate *c)
{
    struct ibv_port_attr attr;
    union ibv_gid gid;

    if (ibv_query_port(context, number, &attr) != 0) {
        return 0;
    }
    memset(c, 0, sizeof(*c));
    snprintf(c->device, sizeof(c->device), "%s", ibv_get_device_name(context->device));
    c->port = number;
    c->is_active = attr.state == IBV_PORT_ACTIVE;
    c->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    c->rate = rate_of(&attr);
    c->distance = distance;
    if (!c->is_ethernet && ibv_query_gid(context, number, 0, &gid) == 0) {
        c->subnet_prefix = gid.global.subnet_prefix;
    }
    return 1;
}

static int look_at_device(struct ibv_device *device, void *topology,
                          struct ibshift_port_candidate *c, int room)
{
    struct ibv_device_attr attr;
    int found = 0;

    if (device->transport_type != IBV_TRANSPORT_IB) {
        return 0;
    }
    struct ibv_context *context = ibv_open_device(device);
    if (context == NULL) {
        return 0;
    }
    if (ibv_query_device(context, &attr) == 0 && attr.max_srq > 0) {
        uint32_t distance = ibshift_device_distance(topology, device);
        for (int p = 1; p <= attr.phys_port_cnt && found < room; p++) {
            found += look_at_port(context, (uint8_t)p, distance, c + found);
        }
    }
    (void)ibv_close_device(context);
    return found;
}

static struct ibv_device *device_named(struct ibv_device **list, const char *name)
{
    for (int i = 0; list[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            return list[i];
        }
    }
    return NULL;
}

int ibshift_device_check(const struct ibshift_device *device, char *error, size_t size)
{
    const struct ibv_device_attr *a = &device->attr;
    const struct {
        const char *what;
        int has, needs;
    } limits[] = {
        {"receives in a shared queue (max_srq_wr)", a->max_srq_wr, IBSHIFT_RECEIVES_MIN},
        {"entries in a completion queue (max_cqe)", a->max_cqe, 2 * IBSHIFT_UD_DEPTH},
        {"requests in a queue pair (max_qp_wr)", a->max_qp_wr, IBSHIFT_UD_DEPTH},
        {"pieces in a request (max_sge)", a->max_sge, 2},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i].has < limits[i].needs) {
            snprintf(error, size, "%s can have %d %s, ibshift needs %d",
                     ibv_get_device_name(device->context->device), limits[i].has, limits[i].what,
                     limits[i].needs);
            return -EOPNOTSUPP;
        }
    }
    return 0;
}

/* The device under this name, opened once however many of its ports are used. */
static struct ibshift_device *open_device(struct ibshift_verbs *verbs, struct ibv_device **list,
                                          const char *name)
{
    for (int i = 0; i < verbs->device_count; i++) {
        if (strcmp(ibv_get_device_name(verbs->devices[i].context->device), name) == 0) {
            return &verbs->devices[i];
        }
    }
    struct ibshift_device *d = &verbs->devices[verbs->device_count];
    struct ibv_device *device = device_named(list, name);
    d->context = device != NULL ? ibv_open_device(device) : NULL;
    if (d->context == NULL) {
        return NULL;
    }
    d->pd = ibv_alloc_pd(d->context);
    if (d->pd == NULL || ibv_query_device(d->context, &d->attr) != 0) {
        if (d->pd != NULL) {
            (void)ibv_dealloc_pd(d->pd);
        }
        (void)ibv_close_device(d->context);
        memset(d, 0, sizeof(*d));
        return NULL;
    }
    verbs->device_count++;
    return d;
}

static int read_gids(struct ibv_context *context, uint8_t number, struct ibshift_gid *out, int room)
{
    struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof(*entries));
    int found = 0;

    if (entries == NULL) {
        return -ENOMEM;
    }
    ssize_t n = ibv_query_gid_table(context, entries, GIDS_MAX, 0);
    for (ssize_t i = 0; i < n && found < room; i++) {
        if (entries[i].port_num == number) {
            out[found].index = entries[i].gid_index;
            out[found].type = (uint8_t)entries[i].gid_type;
            memcpy(out[found++].raw, entries[i].gid.raw, 16);
        }
    }
    free(entries);
    return found;
}

/* The GID of a port by the rules of net_verbs_gid.h. */
static int set_gid(struct ibshift_port *port, struct ibshift_verbs_address *address, int forced)
{
    struct ibshift_gid *table = calloc(GIDS_MAX, sizeof(*table));
    int chosen = -ENOMEM;

    if (table == NULL) {
        return -ENOMEM;
    }
    int n = read_gids(port->device->context, port->number, table, GIDS_MAX);
    if (n >= 0) {
        chosen = ibshift_gid_choose(table, n, address->is_ethernet, forced);
    }
    if (chosen >= 0) {
        port->gid_index = (uint8_t)table[chosen].index;
        memcpy(address->gid, table[chosen].raw, 16);
        address->gid_type = table[chosen].type;
    }
    free(table);
    return chosen < 0 ? chosen : 0;
}

int ibshift_port_open(struct ibshift_verbs *verbs, struct ibv_device **list,
                      const struct ibshift_port_candidate *c, int gid_index)
{
    struct ibshift_port *port = &verbs->ports[verbs->port_count];
    struct ibshift_verbs_address *address = &verbs->blob.address[verbs->port_count];

    port->device = open_device(verbs, list, c->device);
    if (port->device == NULL) {
        return -ENODEV;
    }
    port->number = c->port;
    if (ibv_query_port(port->device->context, port->number, &port->attr) != 0) {
        return -ENODEV;
    }
    address->lid = port->attr.lid;
    address->lmc = port->attr.lmc;
    address->mtu = (uint8_t)port->attr.active_mtu;
    address->is_ethernet = c->is_ethernet;
    address->port = c->port;
    int rc = set_gid(port, address, gid_index);
    if (rc == 0) {
        verbs->port_count++;
    }
    return rc;
}

int ibshift_ports_find(struct ibv_device **list, void *topology,
                       struct ibshift_port_candidate **out)
{
    struct ibshift_port_candidate *c = calloc(CANDIDATES_MAX, sizeof(*c));
    int n = 0;

    if (c == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; list[i] != NULL; i++) {
        n += look_at_device(list[i], topology, c + n, CANDIDATES_MAX - n);
    }
    *out = c;
    return n;
}
