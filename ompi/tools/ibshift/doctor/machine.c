/* Devices, ports, keys, GIDs, counters and limits, as they are told to anyone who asks. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "net/verbs/blob.h"

enum { KEYS_SHOWN = 8, KEYS = 256, GIDS = 256 };

uint64_t doctor_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *layer_of(const struct ibv_port_attr *attr)
{
    return attr->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

static int read_keys(struct ibv_context *context, uint8_t number, const struct ibv_port_attr *attr,
                     uint16_t *keys)
{
    int n = 0;
    __be16 key;

    while (n < KEYS && n < attr->pkey_tbl_len && ibv_query_pkey(context, number, n, &key) == 0) {
        keys[n++] = be16toh(key);
    }
    return n;
}

static void say_keys(struct doctor *d, struct ibv_context *context, uint8_t number,
                     const struct ibv_port_attr *attr)
{
    uint16_t keys[KEYS];
    char text[DOCTOR_TEXT] = "";
    int n = read_keys(context, number, attr, keys), full = 0, shown = 0;

    for (int i = 0; i < n; i++) {
        size_t at = strlen(text);
        full += (keys[i] & IBSHIFT_PKEY_FULL) != 0;
        if (keys[i] != 0 && shown++ < KEYS_SHOWN) {
            snprintf(text + at, sizeof(text) - at, "%s0x%04x %s", at > 0 ? ", " : "", keys[i],
                     keys[i] & IBSHIFT_PKEY_FULL ? "full" : "limited");
        }
    }
    if (attr->link_layer == IBV_LINK_LAYER_ETHERNET) {
        return;
    }
    bool is_default_limited = n > 0 && full > 0 && (keys[0] & IBSHIFT_PKEY_FULL) == 0;
    info_say(&d->info, full > 0 ? INFO_FACT : INFO_BAD, "partition keys", "%s%s", text,
             full == 0 ? ": limited members do not reach each other; ask for full membership"
             : is_default_limited
                 ? ": the first is limited, ibshift takes a full one (coll_ibshift_pkey)"
                 : "");
}

static void say_gids(struct doctor *d, struct ibv_context *context, uint8_t number,
                     const struct ibv_port_attr *attr)
{
    struct ibv_gid_entry *table = calloc(GIDS, sizeof(*table));
    ssize_t n = table != NULL ? ibv_query_gid_table(context, table, GIDS, 0) : 0;
    int all = 0, v2 = 0;

    for (ssize_t i = 0; i < n; i++) {
        all += table[i].port_num == number;
        v2 += table[i].port_num == number && table[i].gid_type == IBV_GID_TYPE_ROCE_V2;
    }
    free(table);
    bool is_required = (attr->flags & IBV_QPF_GRH_REQUIRED) != 0;
    info_say(&d->info, INFO_FACT, "GIDs", "%d, of which %d for RoCE v2", all, v2);
    info_say(&d->info, INFO_FACT, "global header", "%s",
             attr->link_layer == IBV_LINK_LAYER_ETHERNET ? "always, on Ethernet"
             : is_required ? "required by the port (a virtual function, or routers)"
                           : "not required");
}

/* The network device under a port is a bond: one queue pair uses one of its cables. */
static void say_bond(struct doctor *d, struct ibv_context *context, uint8_t number)
{
    char path[512], name[64] = "";

    snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/ndevs/0", context->device->ibdev_path,
             number);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        name[fscanf(f, "%63s", name) == 1 ? sizeof(name) - 1 : 0] = '\0';
        fclose(f);
    }
    snprintf(path, sizeof(path), "/sys/class/net/%s/bonding", name);
    if (name[0] != '\0' && strchr(name, '/') == NULL && access(path, F_OK) == 0) {
        info_say(&d->info, INFO_NOTE, "bond",
                 "%s is a bond: one queue pair uses one of its cables, so ibshift gets one "
                 "cable's rate",
                 name);
    }
}

static void say_port(struct doctor *d, struct ibv_context *context, uint8_t number)
{
    struct ibv_port_attr attr;
    char name[INFO_NAME];

    if (ibv_query_port(context, number, &attr) != 0) {
        return;
    }
    snprintf(name, sizeof(name), "port %u", number);
    info_say(&d->info, INFO_FACT, name, "%s, %s, LID %u, MTU %d, speed code %u, width code %u",
             layer_of(&attr), ibv_port_state_str(attr.state), attr.lid, 128 << attr.active_mtu,
             attr.active_speed, attr.active_width);
    if (attr.state == IBV_PORT_ACTIVE) {
        say_keys(d, context, number, &attr);
        say_gids(d, context, number, &attr);
        say_bond(d, context, number);
    }
}

static bool is_chosen(const struct doctor *d, const char *device, uint8_t number)
{
    for (int i = 0; i < d->info.devices.count; i++) {
        const struct info_port *port = &d->info.devices.ports[i];
        if (port->place == 1) {
            return port->number == number && strcmp(port->device, device) == 0;
        }
    }
    return true; /* none is chosen: the first that is active is tried */
}

/* The context stays open when one of its ports is the one to try. */
static bool take_port(struct doctor *d, struct ibv_context *context,
                      const struct ibv_device_attr *attr)
{
    struct doctor_port *port = &d->port;

    for (uint8_t n = 1; n <= attr->phys_port_cnt && port->context == NULL; n++) {
        uint16_t keys[KEYS];
        if (ibv_query_port(context, n, &port->attr) != 0 || port->attr.state != IBV_PORT_ACTIVE ||
            !is_chosen(d, ibv_get_device_name(context->device), n)) {
            continue;
        }
        int key = ibshift_pkey_choose(keys, read_keys(context, n, &port->attr, keys), 0);
        snprintf(port->name, sizeof(port->name), "%s", ibv_get_device_name(context->device));
        port->device = *attr;
        port->number = n;
        port->pkey_index = key >= 0 ? (uint16_t)key : 0;
        for (int i = 0; i < d->info.devices.count; i++) {
            if (d->info.devices.ports[i].place == 1) {
                port->gid_index = (uint8_t)d->info.devices.ports[i].gid_index;
            }
        }
        (void)ibv_query_gid(context, n, port->gid_index, &port->gid);
        port->pd = ibv_alloc_pd(context);
        port->cq = port->pd != NULL ? ibv_create_cq(context, 256, NULL, NULL, 0) : NULL;
        port->context = port->cq != NULL ? context : NULL;
    }
    return port->context == context;
}

static void say_device(struct doctor *d, struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;

    if (context == NULL || ibv_query_device(context, &attr) != 0) {
        info_say(&d->info, INFO_NOTE, "device",
                 "%s does not open: may this user read and write /dev/infiniband/uverbs*?",
                 ibv_get_device_name(device));
        if (context != NULL) {
            (void)ibv_close_device(context);
        }
        return;
    }
    info_say(&d->info, INFO_FACT, "device", "%s, vendor 0x%x, part %u, firmware %s",
             ibv_get_device_name(device), attr.vendor_id, attr.vendor_part_id,
             attr.fw_ver[0] != '\0' ? attr.fw_ver : "not told");
    for (uint8_t n = 1; n <= attr.phys_port_cnt; n++) {
        say_port(d, context, n);
    }
    if (d->port.context != NULL || !take_port(d, context, &attr)) {
        (void)ibv_close_device(context);
    }
}

static void say_limit(struct doctor *d)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) {
        info_say(&d->info, INFO_FACT, "locked memory", "unlimited");
    } else {
        info_say(&d->info, INFO_NOTE, "locked memory",
                 "%llu KiB: devices need unlimited (container: --ulimit memlock=-1; PAM: "
                 "limits.d; systemd: LimitMEMLOCK=infinity, of slurmd too)",
                 (unsigned long long)limit.rlim_cur >> 10);
    }
}

void doctor_machine(struct doctor *d)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);

    for (int i = 0; list != NULL && i < count; i++) {
        say_device(d, list[i]);
    }
    if (list == NULL || count == 0) {
        info_say(&d->info, INFO_BAD, "device",
                 "none: is the driver loaded, and /dev/infiniband given to this container?");
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    say_limit(d);
}

void doctor_port_close(struct doctor *d)
{
    if (d->port.context != NULL) {
        (void)ibv_destroy_cq(d->port.cq);
        (void)ibv_dealloc_pd(d->port.pd);
        (void)ibv_close_device(d->port.context);
    }
}

/* Counters of the port, which anyone may read: what has grown while the pair was at work. */

static const char *const counters[] = {
    "counters/port_xmit_wait",
    "counters/symbol_error",
    "counters/link_downed",
    "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",
    "hw_counters/np_ecn_marked_roce_packets",
    "hw_counters/out_of_sequence",
    "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/roce_adp_retrans",
};

enum { COUNTERS = sizeof(counters) / sizeof(counters[0]) };

static bool read_counter(const struct doctor_port *port, const char *name,
                         unsigned long long *value)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/ports/%u/%s", port->context->device->ibdev_path, port->number,
             name);
    FILE *f = fopen(path, "r");
    bool is_read = f != NULL && fscanf(f, "%llu", value) == 1;
    if (f != NULL) {
        fclose(f);
    }
    return is_read;
}

void doctor_counters(struct doctor *d, bool is_before)
{
    static unsigned long long before[COUNTERS];
    unsigned long long value;
    char grown[DOCTOR_TEXT] = "";
    int known = 0;

    for (int i = 0; i < COUNTERS && d->port.context != NULL; i++) {
        if (!read_counter(&d->port, counters[i], &value)) {
            continue;
        }
        known++;
        if (!is_before && value != before[i]) {
            size_t at = strlen(grown);
            snprintf(grown + at, sizeof(grown) - at, "%s%s +%llu", at > 0 ? ", " : "",
                     strchr(counters[i], '/') + 1, value - before[i]);
        }
        before[i] = value;
    }
    if (!is_before && d->port.context != NULL) {
        info_say(&d->info, grown[0] != '\0' ? INFO_NOTE : INFO_FACT, "counters", "%s",
                 grown[0] != '\0' ? grown
                 : known > 0      ? "none of congestion or errors has grown"
                                  : "the port has none of congestion or errors");
    }
}
