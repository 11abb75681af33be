/* opensm-subnet.lst: { end } { end } PHY=4x LOG=ACT SPD=2.5, one line a directed link. */
#include "fabric/graph/rate.h"
#include "fabric/read/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct end {
    enum ibshift_node_kind kind;
    uint64_t ports, node_guid, port_guid, lid, port;
    char name[256];
};

static const char *scan_field(const char *at, const char *field, uint64_t *value)
{
    const char *found = at == NULL ? NULL : strstr(at, field);

    return found == NULL ? NULL : ibshift_scan_hex(found + strlen(field), value);
}

static const char *scan_end(const char *at, struct end *end)
{
    const char *name, *after, *lid;

    at = ibshift_scan_blanks(at);
    if (strncmp(at, "{ ", 2) != 0) {
        return NULL;
    }
    end->kind = strncmp(at + 2, "SW", 2) == 0   ? IBSHIFT_NODE_SWITCH
                : strncmp(at + 2, "CA", 2) == 0 ? IBSHIFT_NODE_HCA
                                                : IBSHIFT_NODE_OTHER;
    at = scan_field(at, "Ports:", &end->ports);
    at = scan_field(at, "NodeGUID:", &end->node_guid);
    at = scan_field(at, "PortGUID:", &end->port_guid);
    name = at == NULL ? NULL : strchr(at, '{');
    lid = at == NULL ? NULL : strstr(at, " LID:");
    after = name == NULL || lid == NULL ? NULL : strstr(name, "} LID:");
    if (lid != NULL && (name == NULL || name > lid)) { /* ibdiagnet's: nodes have no name */
        snprintf(end->name, sizeof(end->name), "0x%016" PRIx64, end->node_guid);
        after = lid;
    } else if (after == NULL || (size_t)(after - name) > sizeof(end->name)) {
        return NULL;
    } else {
        memcpy(end->name, name + 1, (size_t)(after - name - 1));
        end->name[after - name - 1] = '\0';
    }
    if (ibshift_is_aggregation_node(end->name)) {
        end->kind = IBSHIFT_NODE_OTHER;
    }
    at = scan_field(after, "LID:", &end->lid);
    at = scan_field(at, "PN:", &end->port);
    at = at == NULL ? NULL : ibshift_scan_blanks(at);
    return at == NULL || *at != '}' ? NULL : at + 1;
}

static int64_t node_of(struct ibshift_lines *lines, struct ibshift_fabric *f, const struct end *end,
                       struct ibshift_error *err)
{
    int64_t node = ibshift_fabric_find_guid(f, end->node_guid);
    struct ibshift_error reason;

    if (node == IBSHIFT_NO_NODE) {
        if (end->ports > IBSHIFT_PORT_MAX) {
            return ibshift_lines_fail(lines, err, -ERANGE, "%" PRIu64 " ports", end->ports);
        }
        node = ibshift_fabric_add_node(f, end->kind, end->node_guid, end->name,
                                       (unsigned)end->ports, &reason);
        if (node < 0) {
            return ibshift_lines_fail(lines, err, (int)node, "%s", reason.text);
        }
    }
    if (end->port < 1 || end->port > f->nodes[node].port_count) {
        return ibshift_lines_fail(lines, err, -ERANGE, "'%s' has no port %" PRIu64,
                                  ibshift_node_name(f, (uint32_t)node), end->port);
    }
    return node;
}

/* The end's port, its node added when new. */
static int64_t port_of(struct ibshift_lines *lines, struct ibshift_fabric *f, const struct end *end,
                       struct ibshift_error *err)
{
    int64_t node = node_of(lines, f, end, err);
    struct ibshift_error reason;
    uint32_t port;
    bool is_switch;
    int rc = 0;

    if (node < 0) {
        return node;
    }
    port = ibshift_node_port(f, (uint32_t)node, (unsigned)end->port);
    is_switch = ibshift_node_is_switch(f, (uint32_t)node);
    if (!is_switch && ibshift_fabric_set_port_guid(f, port, end->port_guid) != 0) {
        return ibshift_lines_fail(lines, err, -EEXIST, "port GUID 0x%" PRIx64 " appears twice",
                                  end->port_guid);
    }
    if (end->lid != 0) {
        rc = end->lid > IBSHIFT_LID_MAX
                 ? ibshift_fail(&reason, -ERANGE, "LID %" PRIu64 " is out of range", end->lid)
                 : ibshift_fabric_set_lid(f, (uint32_t)node, is_switch ? 0 : (unsigned)end->port,
                                          (unsigned)end->lid, 0, &reason);
    }
    return rc == 0 ? (int64_t)port : ibshift_lines_fail(lines, err, rc, "%s", reason.text);
}

/* Width and lane rate: "PHY=4x ... SPD=2.5". */
static struct ibshift_rate rate_of(const char *at)
{
    const char *width = strstr(at, "PHY="), *speed = strstr(at, "SPD=");
    double lanes = width == NULL ? 0 : strtod(width + 4, NULL);
    double lane = speed == NULL ? 0 : strtod(speed + 4, NULL);

    return lanes >= 1 && lanes <= 12 && lane < 1000
               ? ibshift_rate_of_lanes((unsigned)lanes, lane * 1000)
               : IBSHIFT_NO_RATE;
}

static int read_link(struct ibshift_lines *lines, struct ibshift_fabric *f,
                     struct ibshift_error *err)
{
    struct end a, b;
    struct ibshift_error reason;
    const char *at = scan_end(lines->text, &a);
    int64_t port_a, port_b;
    int rc;

    at = at == NULL ? NULL : scan_end(at, &b);
    if (at == NULL) {
        return ibshift_lines_fail(
            lines, err, -EINVAL,
            "wants { CA|SW Ports: NodeGUID: PortGUID: {name} LID: PN: } twice");
    }
    port_a = port_of(lines, f, &a, err);
    port_b = port_a < 0 ? port_a : port_of(lines, f, &b, err);
    if (port_b < 0) {
        return (int)port_b;
    }
    rc = ibshift_fabric_add_link(f, (uint32_t)port_a, (uint32_t)port_b, rate_of(at), &reason);
    return rc == 0 ? 0 : ibshift_lines_fail(lines, err, rc, "%s", reason.text);
}

int ibshift_read_subnet(struct ibshift_lines *lines, struct ibshift_fabric *f,
                        struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    int rc;

    (void)warnings;
    while ((rc = ibshift_lines_next(lines, err)) > 0) {
        if (lines->text[0] != '\0') {
            rc = read_link(lines, f, err);
            if (rc != 0) {
                return rc;
            }
        }
    }
    if (rc == 0 && f->node_count == 0) {
        rc = ibshift_lines_fail(lines, err, -ENODATA, "no link in the file");
    }
    return rc;
}
