#include "coll_ibshift_fabric_file.h"
#include "coll_ibshift.h"
#include "coll_ibshift_cards.h"
#include "coll_ibshift_params.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/table/placement.h"
#include "fabric/read/compiled.h"
#include "fabric/read/read.h"
#include "fabric/shape/shape.h"
#include "net/verbs/blob.h"

struct ibshift_fabric_file ibshift_fabric_file;

/* A path a process of the job; made at the first that is set. Readers take no lock. */
static _Atomic(_Atomic(uint8_t) *) paths;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the making of paths */

static enum ibshift_order_wish wish_of(const char *text)
{
    static const char *const names[] = {"auto", "rank", "routing", "schedule"};

    for (int i = 0; i < IBSHIFT_ORDER_FILE; i++) {
        if (0 == strcmp(text, names[i])) {
            return (enum ibshift_order_wish)i;
        }
    }
    return IBSHIFT_ORDER_FILE;
}

/* What the parameter names, or the administrator's file, which is for adapters; false: there is
 * neither. */
static bool find_path(bool has_adapter, char *path, size_t size)
{
    if ('\0' == ibshift_params.fabric[0]) {
        return has_adapter && ibshift_params_site_file("fabric", path, size);
    }
    return (size_t)snprintf(path, size, "%s", ibshift_params.fabric) < size;
}

/* A published file says whose it is and how long it holds: asked before it is read. */
static int check_imprint(const char *path, const struct ibshift_verbs_subnet *subnet,
                         struct ibshift_error *err)
{
    struct ibshift_imprint imprint = {.time = 0};
    time_t now = time(NULL), expires;
    struct tm tm;
    char text[32] = "?";

    (void)ibshift_compiled_imprint(path, &imprint, NULL); /* load() says what is wrong with it */
    if (NULL == subnet) {
        return 0;
    }
    if (0 != imprint.subnet_prefix && 0 != subnet->prefix &&
        imprint.subnet_prefix != subnet->prefix) {
        return ibshift_fail(err, -ESTALE,
                            "%.200s is of subnet %016" PRIx64 ", host %s is in %016" PRIx64, path,
                            imprint.subnet_prefix, ompi_process_info.nodename, subnet->prefix);
    }
    if (0 != imprint.sm_lid && 0 != subnet->sm_lid && imprint.sm_lid != subnet->sm_lid) {
        return ibshift_fail(err, -ESTALE,
                            "%.200s: the subnet manager was at LID %u, for host %s it is at %u",
                            path, imprint.sm_lid, ompi_process_info.nodename, subnet->sm_lid);
    }
    expires = (time_t)imprint.expires;
    if (0 != imprint.expires && now > expires) {
        if (NULL != gmtime_r(&expires, &tm)) {
            (void)strftime(text, sizeof(text), "%F %R UTC", &tm);
        }
        return ibshift_fail(err, -ESTALE, "%.200s expired at %s", path, text);
    }
    return 0;
}

static int load(const char *path, const struct ibshift_verbs_subnet *subnet,
                struct ibshift_error *err)
{
    struct ibshift_fabric_file *file = &ibshift_fabric_file;
    bool is_listed = IBSHIFT_ORDER_FILE == file->wish;
    struct ibshift_warnings warnings = {.count = 0};
    int rc;

    if (!ibshift_params_may_open(path, err->text, sizeof(err->text)) ||
        (is_listed &&
         !ibshift_params_may_open(ibshift_params.order, err->text, sizeof(err->text)))) {
        return -EINVAL;
    }
    rc = check_imprint(path, subnet, err);
    rc = 0 == rc ? ibshift_fabric_load(path, NULL, &file->fabric, &warnings, err) : rc;
    if (0 == rc && NULL == file->fabric->lft) {
        return ibshift_fail(err, -EINVAL,
                            "%.200s has no forwarding tables: make one file of both with "
                            "\"ibshift fabric compile\"",
                            path);
    }
    if (0 == rc) {
        rc = is_listed
                 ? ibshift_order_load(ibshift_params.order, file->fabric, true, &file->order,
                                      &file->order_count, err)
                 : ibshift_placement_order(file->fabric, &file->order, &file->order_count, err);
    }
    return rc;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

/* Ranks that read the same may choose alike: it depends on the numbers of hosts and on rates too. */
static uint64_t identify(const struct ibshift_fabric_file *file)
{
    const struct ibshift_fabric *fabric = file->fabric;
    uint64_t sum = mix(mix(fabric->guid_sum, fabric->tables_sum), file->wish);

    sum = mix(sum, (fabric->has_loop ? 2 : 0) + (NULL != fabric->sl));
    /* Whether long all-to-alls are native: the rank that names a level says that it prevents the loop. */
    sum = mix(sum, fabric->has_loop && NULL == fabric->sl && ibshift_params.service_level >= 0);

    for (uint32_t p = 0; p < fabric->port_count; p++) {
        const struct ibshift_port *port = &fabric->ports[p];
        sum = mix(sum, fabric->nodes[port->node].guid + port->number);
        sum = mix(sum, port->rate.mbps);
    }
    for (uint32_t i = 0; i < file->order_count; i++) {
        sum = mix(sum, file->order[i]);
    }
    return 0 == sum ? 1 : sum;
}

/* The administrator's file says to nobody that it is of no use: all jobs would have to hear it. */
static void say_adaptive(const char *path)
{
    if (IBSHIFT_ORDER_RANK != ibshift_fabric_file.wish &&
        ('\0' != ibshift_params.fabric[0] || ibshift_params.explain)) {
        ibshift_help_once_a_job("adaptive-fabric", path);
    }
}

void ibshift_fabric_file_open(const struct ibshift_verbs_subnet *subnet)
{
    struct ibshift_fabric_file *file = &ibshift_fabric_file;
    struct ibshift_error err = {""};
    char path[PATH_MAX];
    int rc;

    file->wish = wish_of(ibshift_params.order);
    if (!find_path(NULL != subnet, path, sizeof(path))) {
        return;
    }
    rc = load(path, subnet, &err);
    if (-ESTALE == rc) {
        ibshift_help_once_a_job("old-fabric", err.text);
        ibshift_fabric_file_close();
    } else if (0 != rc) {
        ibshift_help_once_a_job("bad-fabric", err.text);
        ibshift_fabric_file_close();
    } else if (file->fabric->is_adaptive) {
        say_adaptive(path);
        ibshift_fabric_file_close();
    } else {
        file->identity = IBSHIFT_ORDER_RANK == file->wish ? 0 : identify(file);
        file->ring = ibshift_shape_ring(file->fabric);
    }
}

void ibshift_fabric_file_close(void)
{
    struct ibshift_fabric_file *file = &ibshift_fabric_file;

    ibshift_fabric_free(file->fabric);
    free(file->order);
    file->fabric = NULL;
    file->order = NULL;
    file->identity = 0;
    file->ring = 0;
    free(atomic_exchange(&paths, NULL));
}

unsigned ibshift_fabric_path(void *context, uint32_t peer)
{
    _Atomic(uint8_t) *path = atomic_load(&paths);

    return NULL == path || peer >= ompi_process_info.num_procs ? 0 : path[peer];
}

/* Without memory for them, all go to the first LID. */
void ibshift_fabric_set_path(uint32_t peer, uint32_t path)
{
    _Atomic(uint8_t) *all = atomic_load(&paths);

    if (NULL == all) {
        pthread_mutex_lock(&lock);
        all = atomic_load(&paths);
        if (NULL == all) {
            all = calloc(ompi_process_info.num_procs, sizeof(*all));
            atomic_store(&paths, all);
        }
        pthread_mutex_unlock(&lock);
    }
    if (NULL != all && peer < ompi_process_info.num_procs) {
        all[peer] = (uint8_t)path;
    }
}

static uint64_t guid_of(const struct ibshift_verbs_address *address)
{
    uint64_t guid = 0;

    for (int i = 8; i < 16; i++) {
        guid = guid << 8 | address->gid[i];
    }
    return guid;
}

/* The host whose port has this LID and GUID in the file. */
static uint32_t host_at(const struct ibshift_verbs_address *address)
{
    const struct ibshift_fabric *fabric = ibshift_fabric_file.fabric;
    uint32_t host = ibshift_fabric_host_of_lid(fabric, address->lid);

    return IBSHIFT_NO_HOST != host && fabric->ports[fabric->hosts[host]].guid == guid_of(address)
               ? host
               : IBSHIFT_NO_HOST;
}

int ibshift_fabric_service_level(void *context, const struct ibshift_verbs_address *from,
                                 const struct ibshift_verbs_address *to, unsigned path)
{
    const struct ibshift_fabric *fabric = ibshift_fabric_file.fabric;
    uint32_t host;

    if (NULL == fabric || NULL == fabric->sl || from->is_ethernet ||
        IBSHIFT_NO_HOST == (host = host_at(from)) || IBSHIFT_NO_HOST == host_at(to)) {
        return -1;
    }
    return (int)ibshift_fabric_sl(fabric, host, to->lid + path);
}

/* A host whose LID has changed was routed anew: the tables in the file are old. */
static int find_host(const struct ibshift_verbs_blob *blob, uint32_t *host, char *why, size_t size)
{
    const struct ibshift_fabric *fabric = ibshift_fabric_file.fabric;
    const struct ibshift_verbs_address *address = &blob->address[0];
    char guid[24];
    int64_t found;

    if (address->is_ethernet) {
        snprintf(why, size, "host %s is on Ethernet, which has other routes", blob->hostname);
        return -ENOENT;
    }
    snprintf(guid, sizeof(guid), "0x%" PRIx64, guid_of(address));
    found = ibshift_fabric_find_host(fabric, guid);
    if (found < 0) {
        snprintf(why, size,
                 "host %s, port %s, is not in it: the file is older, or of another cluster",
                 blob->hostname, guid);
        return -ENOENT;
    }
    if (ibshift_host_lid(fabric, (uint32_t)found) != address->lid) {
        snprintf(why, size, "host %s has LID %u now, but %u in the file: make the file again",
                 blob->hostname, address->lid, ibshift_host_lid(fabric, (uint32_t)found));
        return -ENOENT;
    }
    *host = (uint32_t)found;
    return 0;
}

int ibshift_fabric_find_hosts(const uint32_t *peers, uint32_t count, uint32_t *host_of, char *why,
                              size_t size)
{
    struct ibshift_verbs_blob blob, first = {.magic = 0};
    uint8_t wire[sizeof(blob)];

    for (uint32_t i = 0; i < count; i++) {
        int length = ibshift_card_copy(NULL, peers[i], wire, sizeof(wire));
        struct ibshift_card_place place;

        if (length != (int)sizeof(wire) || !ibshift_card_place(peers[i], &place) ||
            0 != ibshift_verbs_blob_decode(wire, sizeof(wire), &blob)) {
            return -ENOENT; /* without an adapter: in the memory of one host no order is needed */
        }
        if (place.fabric != ibshift_fabric_file.identity) {
            snprintf(why, size,
                     "host %s has another file, or another coll_ibshift_order, or only one of them "
                     "names a coll_ibshift_service_level",
                     blob.hostname);
            return -ENOENT;
        }
        first = 0 == i ? blob : first;
        if (0 != memcmp(first.address[0].gid, blob.address[0].gid, 8)) {
            snprintf(why, size, "hosts %s and %s are on different subnets", first.hostname,
                     blob.hostname);
            return -ENOENT;
        }
        if (0 != find_host(&blob, &host_of[i], why, size)) {
            return -ENOENT;
        }
    }
    return 0;
}

uint64_t ibshift_fabric_file_kib(void)
{
    const struct ibshift_fabric *fabric = ibshift_fabric_file.fabric;
    uint32_t rate = 0;

    for (uint32_t i = 0; NULL != fabric && i < fabric->host_count; i++) {
        uint32_t cable = fabric->ports[fabric->hosts[i]].rate.mbps;

        rate = 0 == rate || (0 != cable && cable < rate) ? cable : rate;
    }
    return 0 == rate ? 0 : 8192ull * 1000 / rate;
}
