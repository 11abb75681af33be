#include "job/fabric_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/read/compiled.h"
#include "fabric/read/read.h"
#include "fabric/shape/shape.h"
#include "fabric/table/placement.h"

enum ibshift_order_wish ibshift_order_wish_of(const char *text)
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

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

/* Ranks that read the same may choose alike: it depends on the numbers of hosts and on rates too. */
static uint64_t identify(const struct ibshift_fabric_file *file, bool prevents_loop)
{
    const struct ibshift_fabric *fabric = file->fabric;
    uint64_t sum = mix(mix(fabric->guid_sum, fabric->tables_sum), file->wish);

    sum = mix(sum, (fabric->has_loop ? 2 : 0) + (fabric->sl != NULL));
    sum = mix(sum, fabric->has_loop && fabric->sl == NULL && prevents_loop);

    for (uint32_t p = 0; p < fabric->port_count; p++) {
        const struct ibshift_port *port = &fabric->ports[p];
        sum = mix(sum, fabric->nodes[port->node].guid + port->number);
        sum = mix(sum, port->rate.mbps);
    }
    for (uint32_t i = 0; i < file->order_count; i++) {
        sum = mix(sum, file->order[i]);
    }
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
                            "\"ibshift fabric compile\"",
                            path);
    }
    return file->wish == IBSHIFT_ORDER_FILE
               ? ibshift_order_load(order, file->fabric, true, &file->order, &file->order_count,
                                    err)
               : ibshift_placement_order(file->fabric, &file->order, &file->order_count, err);
}

int ibshift_fabric_file_read(const char *path, const char *order,
                             const struct ibshift_subnet *subnet, bool prevents_loop,
                             struct ibshift_fabric_file *file, struct ibshift_error *err)
{
    int rc = subnet == NULL ? 0 : check_imprint(path, subnet, err);

    *file = (struct ibshift_fabric_file){.wish = ibshift_order_wish_of(order)};
    rc = rc == 0 ? load(path, order, file, err) : rc;
    if (rc != 0) {
        ibshift_fabric_file_free(file);
        return rc;
    }
    if (!file->fabric->is_adaptive && file->wish != IBSHIFT_ORDER_RANK) {
        file->identity = identify(file, prevents_loop);
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

uint32_t ibshift_fabric_file_host(const struct ibshift_fabric_file *file, uint64_t guid,
                                  uint16_t lid)
{
    const struct ibshift_fabric *fabric = file->fabric;
    uint32_t host = ibshift_fabric_host_of_lid(fabric, lid);

    return host != IBSHIFT_NO_HOST && fabric->ports[fabric->hosts[host]].guid == guid
               ? host
               : IBSHIFT_NO_HOST;
}

/* A host whose LID has changed was routed anew: the tables in the file are old. */
int ibshift_fabric_file_find(const struct ibshift_fabric_file *file, const char *hostname,
                             uint64_t guid, uint16_t lid, uint32_t *host, char *why, size_t size)
{
    char text[24];
    int64_t found;

    snprintf(text, sizeof(text), "0x%" PRIx64, guid);
    found = ibshift_fabric_find_host(file->fabric, text);
    if (found < 0) {
        snprintf(why, size,
                 "host %s, port %s, is not in it: the file is older, or of another cluster",
                 hostname, text);
        return -ENOENT;
    }
    if (ibshift_host_lid(file->fabric, (uint32_t)found) != lid) {
        snprintf(why, size, "host %s has LID %u now, but %u in the file: make the file again",
                 hostname, lid, ibshift_host_lid(file->fabric, (uint32_t)found));
        return -ENOENT;
    }
    *host = (uint32_t)found;
    return 0;
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
