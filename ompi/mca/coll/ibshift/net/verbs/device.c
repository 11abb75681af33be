/* Which devices there are, and which of their ports this process uses. */
#include <endian.h>
#include <errno.h>
#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/verbs/device.h"
#include "net/verbs/choice.h"

enum { GIDS_MAX = 1024, PKEYS_MAX = 256 };

static struct ibv_device *device_named(struct ibv_device **list, const char *name)
{
    for (int i = 0; list[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            return list[i];
        }
    }
    return NULL;
}

/* Whether the device has room for the net's queues; else error says what it lacks. 0, -EOPNOTSUPP
 */
static int check_device(const struct ibshift_device *device, char *error, size_t size)
{
    const struct ibv_device_attr *a = &device->attr;
    const struct {
        const char *what;
        int has, needs;
    } limits[] = {
        {"receives in a shared queue (max_srq_wr)",
         a->max_srq > 0 ? a->max_srq_wr : IBSHIFT_RECEIVES_MIN, IBSHIFT_RECEIVES_MIN},
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

/* The GID of a port by the rules of choice.h. */
static int set_gid(struct ibshift_port *port, struct ibshift_verbs_address *address, int forced)
{
    struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof(*entries));
    struct ibshift_gid *table = calloc(GIDS_MAX, sizeof(*table));
    int count = 0, chosen = -ENOMEM;

    if (entries != NULL && table != NULL) {
        ssize_t n = ibv_query_gid_table(port->device->context, entries, GIDS_MAX, 0);

        for (ssize_t i = 0; i < n; i++) {
            if (entries[i].port_num == port->number) {
                table[count].index = entries[i].gid_index;
                table[count].type = (uint8_t)entries[i].gid_type;
                memcpy(table[count++].raw, entries[i].gid.raw, 16);
            }
        }
        chosen = ibshift_gid_choose(table, count, address->is_ethernet, forced);
    }
    if (chosen >= 0) {
        port->gid_index = (uint8_t)table[chosen].index;
        memcpy(address->gid, table[chosen].raw, 16);
        address->gid_type = table[chosen].type;
    }
    free(entries);
    free(table);
    return chosen < 0 ? chosen : 0;
}

/* -ENOKEY: the port is in no such partition. */
static int set_pkey(struct ibshift_port *port, struct ibshift_verbs_address *address, int wanted)
{
    uint16_t table[PKEYS_MAX];
    int n = 0;

    if (address->is_ethernet) {
        return 0;
    }
    while (n < PKEYS_MAX && n < port->attr.pkey_tbl_len) {
        __be16 key;
        if (ibv_query_pkey(port->device->context, port->number, n, &key) != 0) {
            break;
        }
        table[n++] = be16toh(key);
    }
    int chosen = ibshift_pkey_choose(table, n, (uint16_t)wanted);
    if (chosen < 0) {
        return -ENOKEY;
    }
    port->pkey_index = (uint16_t)chosen;
    address->pkey = table[chosen];
    return 0;
}

/* Appends a port to verbs and its address to the blob. -ENODEV: it does not open; -ENOENT: it has
   no GID that fits. */
static int add_port(struct ibshift_verbs *verbs, struct ibv_device **list,
                    const struct ibshift_port_candidate *c,
                    const struct ibshift_verbs_options *options)
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
    address->needs_grh = c->is_ethernet || (port->attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
    int rc = set_gid(port, address, options->gid_index);
    rc = rc != 0 ? rc : set_pkey(port, address, options->pkey);
    if (rc == 0) {
        verbs->port_count++;
    }
    return rc;
}

/* Opening and closing: devices, ports, the datagram queue pair, the card for the others. */

__attribute__((format(printf, 4, 5))) static int fail(int status, char *error, size_t size,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return status;
}

/* Numbers have the ranges of the component's parameters. */
static int check_ports(const struct ibshift_verbs_options *o, char *error, size_t size)
{
    const char *at;

    if (o->ports != NULL && ibshift_port_list_check(o->ports, &at) != 0) {
        return fail(-EINVAL, error, size, "ports \"%s\": at \"%s\": expected name[:port],...",
                    o->ports, at);
    }
    return 0;
}

static uint64_t host_id(const char *hostname)
{
    uint64_t hash = 14695981039346656037u;
    char boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (f != NULL) {
        if (fgets(boot, sizeof(boot), f) == NULL) {
            boot[0] = '\0';
        }
        fclose(f);
    }
    const char *texts[] = {hostname, boot};
    for (int i = 0; i < 2; i++) {
        for (const char *p = texts[i]; *p != '\0'; p++) {
            hash = (hash ^ (uint8_t)*p) * 1099511628211u;
        }
    }
    return hash;
}

static int make_card(struct ibshift_verbs *verbs)
{
    struct ibshift_verbs_blob *b = &verbs->blob;
    char hostname[256] = "";

    (void)gethostname(hostname, sizeof(hostname) - 1);
    snprintf(b->hostname, sizeof(b->hostname), "%.*s", (int)sizeof(b->hostname) - 1, hostname);
    b->host = host_id(hostname);
    b->ports = (uint16_t)verbs->port_count;
    b->ud_qpn = verbs->ud_qp->qp_num;
    if (getrandom(&b->incarnation, sizeof(b->incarnation), 0) != sizeof(b->incarnation)) {
        return -EIO;
    }
    ibshift_verbs_blob_encode(b, verbs->card);
    return 0;
}

/* Whether the device knows address handles at all: without them no datagram of ours would ever
   leave, and all would be repeated for ever. */
static int try_address(struct ibshift_verbs *verbs)
{
    const struct ibshift_verbs_address *own = &verbs->blob.address[0];
    struct ibv_ah_attr attr = {.dlid = own->lid,
                               .port_num = verbs->ports[0].number,
                               .is_global = own->needs_grh,
                               .grh = {.sgid_index = verbs->ports[0].gid_index, .hop_limit = 64}};

    memcpy(attr.grh.dgid.raw, own->gid, sizeof(own->gid));
    struct ibv_ah *ah = ibv_create_ah(verbs->ports[0].device->pd, &attr);
    if (ah != NULL) {
        (void)ibv_destroy_ah(ah);
        return 0;
    }
    return errno == EOPNOTSUPP || errno == ENOSYS ? -errno : 0; /* others may know more of it */
}

static int open_datagrams(struct ibshift_verbs *verbs)
{
    struct ibshift_device *d = verbs->ports[0].device;
    uint32_t qkey;

    if (getrandom(&qkey, sizeof(qkey), 0) != sizeof(qkey)) {
        return -EIO;
    }
    verbs->blob.ud_qkey = qkey & 0x7fffffff; /* the upper half belongs to the subnet manager */
    verbs->ud_cq = ibv_create_cq(d->context, 2 * IBSHIFT_UD_DEPTH, NULL, NULL, 0);
    if (verbs->ud_cq == NULL) {
        return -errno;
    }
    struct ibv_qp_init_attr attr = {
        .send_cq = verbs->ud_cq,
        .recv_cq = verbs->ud_cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = IBSHIFT_UD_DEPTH,
                .max_recv_wr = IBSHIFT_UD_DEPTH,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    verbs->ud_qp = ibv_create_qp(d->pd, &attr);
    return verbs->ud_qp == NULL ? -errno : try_address(verbs);
}

/* Which ports there are, for one who has named another or finds them all down. */
static int say_none(const struct ibshift_port_candidate *c, int n, const char *wanted, char *error,
                    size_t size)
{
    int is_named = wanted != NULL && wanted[0] != '\0';
    size_t length = (size_t)snprintf(error, size, "no active port%s%s; here %s",
                                     is_named ? " is named by " : "", is_named ? wanted : "",
                                     n > 0 ? "are" : "is none");

    for (int i = 0; i < n && length < size; i++) {
        length += (size_t)snprintf(error + length, size - length, "%s%s:%u%s", i > 0 ? ", " : " ",
                                   c[i].device, c[i].port, c[i].is_active ? "" : " (not active)");
    }
    return -ENODEV;
}

/* Receive queues of single peers are filled as messages are granted, which one port alone can say. */
static int count_with_receives(const struct ibshift_port_candidate *c, const int *chosen, int count)
{
    for (int i = 0; i < count; i++) {
        if (c[chosen[i]].lacks_srq) {
            return 1;
        }
    }
    return count;
}

static int open_ports(struct ibshift_verbs *verbs, struct ibv_device **list,
                      const struct ibshift_verbs_options *o, char *error, size_t size)
{
    struct ibshift_port_candidate *c = NULL;
    int chosen[IBSHIFT_PORTS_MAX], rc = 0;
    int n = ibshift_ports_find(list, o->topology, &c);

    if (n < 0) {
        return fail(n, error, size, "out of memory");
    }
    int count = ibshift_port_choose(c, n, o->ports, o->max_ports, chosen);
    if (count == 0) {
        rc = say_none(c, n, o->ports, error, size);
    }
    count = count_with_receives(c, chosen, count);
    for (int i = 0; i < count && rc == 0; i++) {
        rc = add_port(verbs, list, &c[chosen[i]], o);
        if (rc == -ENOENT) {
            rc = o->gid_index < 0 ? rc : -EINVAL;
            fail(rc, error, size, "port %s:%d has no GID with index %d (ibv_devinfo -v lists them)",
                 c[chosen[i]].device, c[chosen[i]].port, o->gid_index < 0 ? 0 : o->gid_index);
        } else if (rc == -ENOKEY) {
            rc = fail(-EINVAL, error, size,
                      "port %s:%d has no partition key%s%.0x (ibv_devinfo -v and "
                      "/sys/class/infiniband/%s/ports/%d/pkeys list them)",
                      c[chosen[i]].device, c[chosen[i]].port, o->pkey != 0 ? " 0x" : "",
                      (unsigned)o->pkey, c[chosen[i]].device, c[chosen[i]].port);
        } else if (rc != 0) {
            fail(rc, error, size, "port %s:%d does not open: %s", c[chosen[i]].device,
                 c[chosen[i]].port, strerror(-rc));
        }
    }
    free(c);
    return rc;
}

int ibshift_verbs_open(const struct ibshift_verbs_options *options, struct ibshift_verbs **verbs,
                       char *error, size_t error_size)
{
    int count = 0;
    int rc = check_ports(options, error, error_size);
    struct ibv_device **list = rc == 0 ? ibv_get_device_list(&count) : NULL;

    if (rc == 0 && (list == NULL || count == 0)) {
        rc = fail(-ENODEV, error, error_size, "no RDMA device");
    }
    if (rc == 0 && options->survives_fork) {
        (void)
            ibv_fork_init(); /* before the first registration; others may have asked for it already */
    }
    struct ibshift_verbs *v = rc == 0 ? calloc(1, sizeof(*v)) : NULL;
    if (rc == 0 && v == NULL) {
        rc = fail(-ENOMEM, error, error_size, "out of memory");
    }
    if (rc == 0) {
        v->service_level = (uint8_t)options->service_level;
        v->traffic_class = (uint8_t)options->traffic_class;
        rc = open_ports(v, list, options, error, error_size);
    }
    for (int i = 0; rc == 0 && i < v->device_count; i++) {
        rc = check_device(&v->devices[i], error, error_size);
    }
    if (rc == 0 && ((rc = open_datagrams(v)) != 0 || (rc = make_card(v)) != 0)) {
        fail(rc, error, error_size, "%s cannot send datagrams (queue pair, address handle): %s",
             ibv_get_device_name(v->ports[0].device->context->device), strerror(-rc));
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (rc != 0) {
        ibshift_verbs_close(v);
        return rc;
    }
    *verbs = v;
    return 0;
}

const void *ibshift_verbs_card(const struct ibshift_verbs *verbs, size_t *size)
{
    *size = sizeof(verbs->card);
    return verbs->card;
}

void ibshift_verbs_describe(const struct ibshift_verbs *verbs, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (int i = 0; i < verbs->port_count && at < size; i++) {
        const struct ibshift_port *p = &verbs->ports[i];
        at += (size_t)snprintf(text + at, size - at, "%s%s:%d", i > 0 ? ", " : "",
                               ibv_get_device_name(p->device->context->device), p->number);
    }
}

void ibshift_verbs_close(struct ibshift_verbs *verbs)
{
    if (verbs == NULL) {
        return;
    }
    if (verbs->ud_qp != NULL) {
        (void)ibv_destroy_qp(verbs->ud_qp);
    }
    if (verbs->ud_cq != NULL) {
        (void)ibv_destroy_cq(verbs->ud_cq);
    }
    for (int i = 0; i < verbs->device_count; i++) {
        (void)ibv_dealloc_pd(verbs->devices[i].pd);
        (void)ibv_close_device(verbs->devices[i].context);
    }
    free(verbs);
}
