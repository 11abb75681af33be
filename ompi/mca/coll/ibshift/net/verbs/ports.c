/* Which devices and ports there are, where, and what they say of themselves. */
#include <errno.h>
#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/verbs/device.h"

enum { CANDIDATES_MAX = 256 };

uint32_t ibshift_cpuset_distance(void *topology, const void *device_cpus, const void *own_cpus)
{
    if (hwloc_bitmap_isincluded(own_cpus, device_cpus)) {
        return 0;
    }
    hwloc_obj_t device = hwloc_get_obj_covering_cpuset(topology, device_cpus);
    hwloc_obj_t own = hwloc_get_obj_covering_cpuset(topology, own_cpus);
    if (device == NULL || own == NULL) {
        return (uint32_t)hwloc_topology_get_depth(topology);
    }
    hwloc_obj_t both = hwloc_get_common_ancestor_obj(topology, device, own);
    int depth = both != NULL && both->depth > 0 ? both->depth : 0;
    return (uint32_t)(hwloc_topology_get_depth(topology) - depth);
}

static uint32_t measure_distance(void *topology, struct ibv_device *device)
{
    uint32_t distance = 0;
    hwloc_bitmap_t device_cpus, own_cpus;

    if (topology == NULL) {
        return 0;
    }
    device_cpus = hwloc_bitmap_alloc();
    own_cpus = hwloc_bitmap_alloc();
    if (device_cpus != NULL && own_cpus != NULL &&
        hwloc_get_cpubind(topology, own_cpus, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_ibv_get_device_cpuset(topology, device, device_cpus) == 0) {
        distance = ibshift_cpuset_distance(topology, device_cpus, own_cpus);
    }
    hwloc_bitmap_free(device_cpus);
    hwloc_bitmap_free(own_cpus);
    return distance;
}

uint32_t ibshift_processors_count(void *topology)
{
    int count = topology != NULL ? hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology))
                                 : (int)sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (uint32_t)count : 1;
}

struct ibshift_verbs_subnet ibshift_verbs_subnet(const struct ibshift_verbs *verbs)
{
    const struct ibshift_verbs_address *address = &verbs->blob.address[0];
    struct ibshift_verbs_subnet subnet = {.prefix = 0};

    if (!address->is_ethernet) {
        for (int i = 0; i < 8; i++) {
            subnet.prefix = subnet.prefix << 8 | address->gid[i];
        }
        subnet.sm_lid = verbs->ports[0].attr.sm_lid;
    }
    return subnet;
}

bool ibshift_verbs_is_software(const struct ibshift_verbs *verbs)
{
    const char *folder = verbs->ports[0].device->context->device->ibdev_path;
    char bus[PATH_MAX];

    snprintf(bus, sizeof(bus), "%s/device/subsystem", folder);
    return access(folder, F_OK) == 0 && access(bus, F_OK) != 0;
}

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

void ibshift_verbs_kind(const struct ibshift_verbs *verbs, char *device, size_t size,
                        uint32_t *mbps)
{
    const struct ibshift_port *port = &verbs->ports[0];
    const char *name = ibv_get_device_name(port->device->context->device);
    const char *number = strrchr(name, '_');
    int length = (int)(number != NULL ? (size_t)(number - name) : strlen(name));

    snprintf(device, size, "%.*s %04x:%04x", length, name, port->device->attr.vendor_id,
             port->device->attr.vendor_part_id);
    *mbps = rate_of(&port->attr);
}

void ibshift_verbs_firmware(const struct ibshift_verbs *verbs, char *text, size_t size)
{
    snprintf(text, size, "%s", verbs->ports[0].device->attr.fw_ver);
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
    if (ibv_query_device(context, &attr) == 0) {
        uint32_t distance = measure_distance(topology, device);
        for (int p = 1; p <= attr.phys_port_cnt && found < room; p++) {
            if (look_at_port(context, (uint8_t)p, distance, c + found)) {
                c[found++].lacks_srq = attr.max_srq == 0;
            }
        }
    }
    (void)ibv_close_device(context);
    return found;
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
