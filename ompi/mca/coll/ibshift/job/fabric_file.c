#include "job/fabric_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "choose/digest.h"
#include "fabric/read/compiled.h"
#include "fabric/read/read.h"
#include "fabric/shape/shape.h"
#include "fabric/table/placement.h"
#include "job/cards.h"
#include "job/site.h"

static enum ibshift_order_wish wish_of(const char *text)
{
    static const char *const names[] = {"auto", "rank", "routing", "schedule"};
    int i = 0;

    while (i < IBSHIFT_ORDER_FILE && strcmp(text, names[i]) != 0) {
        i++;
    }
    return (enum ibshift_order_wish)i;
}

/* A published file says whose it is and how long it holds: asked before it is read. */
static int check_imprint(const char *path, const struct ibshift_subnet *subnet,
                         struct ibshift_error *err)
{
    struct ibshift_imprint imprint = {.time = 0};
    time_t now = time(NULL), expires;
    struct tm tm;
    char text[32] = "?";

    (void)ibshift_compiled_imprint(path, &imprint, NULL); /* load() says what is wrong with it */
    if (imprint.subnet_prefix != 0 && subnet->prefix != 0 &&
        imprint.subnet_prefix != subnet->prefix) {
        return ibshift_fail(err, -ESTALE,
                            "%.200s is of subnet %016" PRIx64 ", host %s is in %016" PRIx64, path,
                            imprint.subnet_prefix, subnet->host, subnet->prefix);
    }
    if (imprint.sm_lid != 0 && subnet->sm_lid != 0 && imprint.sm_lid != subnet->sm_lid) {
        return ibshift_fail(err, -ESTALE,
                            "%.200s: the subnet manager was at LID %u, for host %s it is at %u",
                            path, imprint.sm_lid, subnet->host, subnet->sm_lid);
    }
    expires = (time_t)imprint.expires;
    if (imprint.expires != 0 && now > expires) {
        if (gmtime_r(&expires, &tm) != NULL) {
            (void)strftime(text, sizeof(text), "%F %R UTC", &tm);
        }
        return ibshift_fail(err, -ESTALE, "%.200s expired at %s", path, text);
    }
    return 0;
}

static uint64_t add(uint64_t sum, uint64_t value)
{
    return ibshift_digest(sum, &value, sizeof(value));
}

/* Ranks that read the same may choose alike: it depends on the numbers of hosts and on rates too. */
static uint64_t identify(const struct ibshift_fabric_file *file, bool prevents_loop)
{
    const struct ibshift_fabric *fabric = file->fabric;
    uint64_t sum = add(add(add(IBSHIFT_DIGEST, fabric->guid_sum), fabric->tables_sum), file->wish);

    sum =
        add(sum, (fabric->is_adaptive ? 4 : 0) + (fabric->has_loop ? 2 : 0) + (fabric->sl != NULL));
    sum = add(sum, fabric->has_loop && fabric->sl == NULL && prevents_loop);
    for (uint32_t p = 0; p < fabric->port_count; p++) {
        const struct ibshift_port *port = &fabric->ports[p];

        sum = add(sum, fabric->nodes[port->node].guid + port->number);
        sum = add(sum, port->rate.mbps);
    }
    sum = ibshift_digest(sum, file->order, file->order_count * sizeof(*file->order));
    return sum == 0 ? 1 : sum;
}

static int load(const char *path, const char *order, struct ibshift_fabric_file *file,
                struct ibshift_error *err)
{
    struct ibshift_warnings warnings = {.count = 0};
    int rc = ibshift_fabric_load(path, NULL, &file->fabric, &warnings, err);

    if (rc != 0) {
        return rc;
    }
    if (file->fabric->lft == NULL) {
        return ibshift_fail(err, -EINVAL,
                            "%.200s has no forwarding tables: make one file of both with "
                            "\"ibshift fabric publish\"",
                            path);
    }
    return file->wish == IBSHIFT_ORDER_FILE
               ? ibshift_order_load(order, file->fabric, true, &file->order, &file->order_count,
                                    err)
               : ibshift_placement_order(file->fabric, &file->order, &file->order_count, err);
}

static int read_file(const char *path, const struct ibshift_params *params,
                     const struct ibshift_subnet *subnet, struct ibshift_fabric_file *file,
                     struct ibshift_error *err)
{
    int rc;

    if (!ibshift_site_may_open(path, err->text, sizeof(err->text)) ||
        (file->wish == IBSHIFT_ORDER_FILE &&
         !ibshift_site_may_open(params->order, err->text, sizeof(err->text)))) {
        return -EINVAL;
    }
    rc = subnet == NULL ? 0 : check_imprint(path, subnet, err);
    return rc == 0 ? load(path, params->order, file, err) : rc;
}

int ibshift_fabric_file_find(const struct ibshift_params *params,
                             const struct ibshift_subnet *subnet, struct ibshift_fabric_file *file,
                             char path[PATH_MAX], struct ibshift_error *err)
{
    bool is_named = params->fabric[0] != '\0';
    int rc;

    *file = (struct ibshift_fabric_file){.wish = wish_of(params->order)};
    if (is_named) {
        snprintf(path, PATH_MAX, "%s", params->fabric);
    } else if (subnet == NULL || !ibshift_site_file("fabric", path, PATH_MAX)) {
        return 0; /* the administrator's is for adapters */
    }
    rc = read_file(path, params, subnet, file, err);
    if (rc != 0) {
        ibshift_fabric_file_free(file);
        return rc;
    }
    if (file->wish != IBSHIFT_ORDER_RANK) {
        file->identity = identify(file, params->service_level >= 0);
    }
    file->ring = ibshift_shape_ring(file->fabric);
    return 0;
}

void ibshift_fabric_file_free(struct ibshift_fabric_file *file)
{
    ibshift_fabric_free(file->fabric);
    free(file->order);
    *file = (struct ibshift_fabric_file){.wish = file->wish};
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
static uint32_t host_at(const struct ibshift_fabric *fabric,
                        const struct ibshift_verbs_address *address)
{
    uint32_t host = ibshift_fabric_host_of_lid(fabric, address->lid);

    return host != IBSHIFT_NO_HOST && fabric->ports[fabric->hosts[host]].guid == guid_of(address)
               ? host
               : IBSHIFT_NO_HOST;
}

int ibshift_fabric_file_level(const struct ibshift_fabric_file *file,
                              const struct ibshift_verbs_address *from,
                              const struct ibshift_verbs_address *to, unsigned path)
{
    const struct ibshift_fabric *fabric = file->fabric;
    uint32_t host;

    if (fabric == NULL || fabric->sl == NULL || from->is_ethernet ||
        (host = host_at(fabric, from)) == IBSHIFT_NO_HOST ||
        host_at(fabric, to) == IBSHIFT_NO_HOST) {
        return -1;
    }
    return (int)ibshift_fabric_sl(fabric, host, to->lid + path);
}

/* A host whose LID has changed was routed anew: the tables in the file are old. */
static int find_host(const struct ibshift_fabric *fabric, const struct ibshift_verbs_blob *blob,
                     uint32_t *host, struct ibshift_error *err)
{
    const struct ibshift_verbs_address *address = &blob->address[0];
    char guid[24];
    int64_t found;

    if (address->is_ethernet) {
        return ibshift_fail(err, -ENOENT, "host %s is on Ethernet, which has other routes",
                            blob->hostname);
    }
    snprintf(guid, sizeof(guid), "0x%" PRIx64, guid_of(address));
    found = ibshift_fabric_find_host(fabric, guid);
    if (found < 0) {
        return ibshift_fail(err, -ENOENT,
                            "host %s, port %s, is not in it: the file is older, or of another "
                            "cluster",
                            blob->hostname, guid);
    }
    if (ibshift_host_lid(fabric, (uint32_t)found) != address->lid) {
        return ibshift_fail(
            err, -ENOENT, "host %s has LID %u now, but %u in the file: make the file again",
            blob->hostname, address->lid, ibshift_host_lid(fabric, (uint32_t)found));
    }
    *host = (uint32_t)found;
    return 0;
}

int ibshift_fabric_file_hosts(const struct ibshift_fabric_file *file, const uint32_t *peers,
                              uint32_t count, uint32_t *host_of, struct ibshift_error *err)
{
    struct ibshift_verbs_blob blob, first = {.magic = 0};
    uint8_t wire[sizeof(blob)];
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        int length = ibshift_card_copy(NULL, peers[i], wire, sizeof(wire));
        struct ibshift_card_place place;

        if (length != (int)sizeof(wire) || !ibshift_card_place(peers[i], &place) ||
            ibshift_verbs_blob_decode(wire, sizeof(wire), &blob) != 0) {
            return -ENOENT; /* without an adapter: in the memory of one host no order is needed */
        }
        first = i == 0 ? blob : first;
        if (place.fabric != file->identity) {
            return ibshift_fail(err, -ENOENT,
                                "host %s has another file, or another coll_ibshift_order, or only "
                                "one of them names a coll_ibshift_service_level",
                                blob.hostname);
        }
        if (memcmp(first.address[0].gid, blob.address[0].gid, 8) != 0) {
            return ibshift_fail(err, -ENOENT, "hosts %s and %s are on different subnets",
                                first.hostname, blob.hostname);
        }
        rc = find_host(file->fabric, &blob, &host_of[i], err);
    }
    return rc;
}

uint64_t ibshift_fabric_file_kib(const struct ibshift_fabric_file *file)
{
    uint32_t rate = 0;

    for (uint32_t i = 0; file->fabric != NULL && i < file->fabric->host_count; i++) {
        uint32_t cable = file->fabric->ports[file->fabric->hosts[i]].rate.mbps;

        rate = rate == 0 || (cable != 0 && cable < rate) ? cable : rate;
    }
    return rate == 0 ? 0 : 8192ull * 1000 / rate;
}
