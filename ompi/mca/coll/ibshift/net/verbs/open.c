/* Opening and closing: devices, ports, the datagram queue pair, the card for the others. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/verbs/find.h"

__attribute__((format(printf, 4, 5))) static int fail(int status, char *error, size_t size,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return status;
}

static int check_options(const struct ibshift_verbs_options *o, char *error, size_t size)
{
    const char *at;

    if (o->max_ports < 1 || o->max_ports > IBSHIFT_PORTS_MAX) {
        return fail(-EINVAL, error, size, "%d ports: must be 1 to %d", o->max_ports,
                    IBSHIFT_PORTS_MAX);
    }
    if (o->gid_index < -1 || o->gid_index > 255) {
        return fail(-EINVAL, error, size, "GID index %d: must be -1 to 255", o->gid_index);
    }
    if (o->service_level < 0 || o->service_level > 15) {
        return fail(-EINVAL, error, size, "service level %d: must be 0 to 15", o->service_level);
    }
    if (o->traffic_class < 0 || o->traffic_class > 255) {
        return fail(-EINVAL, error, size, "traffic class %d: must be 0 to 255", o->traffic_class);
    }
    if (o->ports != NULL && ibshift_port_list_check(o->ports, &at) != 0) {
        return fail(-EINVAL, error, size, "ports \"%s\": at \"%s\": expected name[:port],...",
                    o->ports, at);
    }
    return 0;
}

/* Before the first registration; harmless when someone else has asked for it already. */
static int ask_fork_safety(int policy, char *error, size_t size)
{
    int rc = policy == 0 ? 0 : ibv_fork_init();
    if (rc != 0 && policy > 0) {
        return fail(-rc, error, size,
                    "fork safety cannot be had (%s): memory was registered before", strerror(rc));
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

int ibshift_ud_open(struct ibshift_verbs *verbs)
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
    return verbs->ud_qp == NULL ? -errno : 0;
}

void ibshift_ud_close(struct ibshift_verbs *verbs)
{
    if (verbs->ud_qp != NULL) {
        (void)ibv_destroy_qp(verbs->ud_qp);
    }
    if (verbs->ud_cq != NULL) {
        (void)ibv_destroy_cq(verbs->ud_cq);
    }
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
    for (int i = 0; i < count && rc == 0; i++) {
        rc = ibshift_port_open(verbs, list, &c[chosen[i]], o->gid_index);
        if (rc == -ENOENT) {
            rc = o->gid_index < 0 ? rc : -EINVAL;
            fail(rc, error, size, "port %s:%d has no GID with index %d (ibv_devinfo -v lists them)",
                 c[chosen[i]].device, c[chosen[i]].port, o->gid_index < 0 ? 0 : o->gid_index);
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
    int rc = check_options(options, error, error_size);
    struct ibv_device **list = rc == 0 ? ibv_get_device_list(&count) : NULL;

    if (rc == 0 && (list == NULL || count == 0)) {
        rc = fail(-ENODEV, error, error_size, "no RDMA device");
    }
    rc = rc != 0 ? rc : ask_fork_safety(options->fork, error, error_size);
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
        rc = ibshift_device_check(&v->devices[i], error, error_size);
    }
    if (rc == 0 && ((rc = ibshift_ud_open(v)) != 0 || (rc = make_card(v)) != 0)) {
        fail(rc, error, error_size, "no datagram queue pair: %s", strerror(-rc));
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
    ibshift_ud_close(verbs);
    for (int i = 0; i < verbs->device_count; i++) {
        (void)ibv_dealloc_pd(verbs->devices[i].pd);
        (void)ibv_close_device(verbs->devices[i].context);
    }
    free(verbs);
}
