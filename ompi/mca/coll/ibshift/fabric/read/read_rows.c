/*
 * Reports with a row per port.
 *
 * ibdiagnet2.net_dump: each switch with the state of its ports; adapters are known from these rows
 * alone. Releases differ in the columns, so they are found by name; the description is the last and
 * may have colons.
 *
 *   "NAME", VENDOR, 0xGUID, LID 7
 *   # : IB# : Sta : PhysSta : MTU : LWA : LSA : ... : Neighbor Guid : N# : NLID : Neighbor Description
 *   1 : 1 : ACT : LINK UP : 5 : 4x : 100 : ... : 0x... : 1 : 12 : "host1 mlx5_0"
 *
 * ibnetdiscover --ports: each port, what it is joined with, and the descriptions of both.
 *
 *   SW     7  1 0x... 4x EDR - CA    12  1 0x... ( 'leaf1' - 'host1 mlx5_0' )
 *   SW     7  2 0x... 4x ???                       'leaf1'
 */
#include "fabric/graph/rate.h"
#include "fabric/read/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ibshift_rows_node {
    uint64_t guid;
    char *name;
    unsigned lid, ports; /* of an adapter the LID is of its first port that a row names */
    enum ibshift_node_kind kind;
    bool is_described; /* a switch that has had its heading */
    int64_t added;     /* its number in the fabric */
};

struct ibshift_rows_cable {
    uint32_t node, remote; /* in nodes */
    unsigned port, remote_port, line;
    unsigned lid, remote_lid; /* 0: the row does not say */
    struct ibshift_rate rate;
};

/* Room for one more of an array that doubles. */
static void *grown(void *array, uint32_t count, size_t size)
{
    return (count & (count - 1)) != 0 ? array
                                      : realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * size);
}

/* The node with this GUID, added when new; negative: err. */
static int64_t node_of(struct ibshift_rows *d, uint64_t guid, const char *name)
{
    uint32_t known = ibshift_map64_get(&d->by_guid, guid);
    struct ibshift_rows_node *moved;

    if (known != IBSHIFT_MAP_MISS) {
        return known;
    }
    moved = grown(d->nodes, d->node_count, sizeof(*moved));
    if (moved == NULL) {
        return ibshift_lines_fail(d->lines, d->err, -ENOMEM, "no memory for more nodes");
    }
    d->nodes = moved;
    d->nodes[d->node_count] = (struct ibshift_rows_node){
        .guid = guid,
        .name = strdup(name),
        .kind = ibshift_is_aggregation_node(name) ? IBSHIFT_NODE_OTHER : IBSHIFT_NODE_HCA};
    if (d->nodes[d->node_count].name == NULL ||
        ibshift_map64_add(&d->by_guid, guid, d->node_count) != 0) {
        free(d->nodes[d->node_count].name);
        return ibshift_lines_fail(d->lines, d->err, -EINVAL, "GUID 0x%" PRIx64 " cannot be", guid);
    }
    return d->node_count++;
}

static int read_switch(struct ibshift_rows *d, const char *line)
{
    char name[512];
    const char *rest = ibshift_scan_quoted(line, name, sizeof(name));
    const char *guid_at = rest == NULL ? NULL : strstr(rest, "0x");
    const char *lid_at = guid_at == NULL ? NULL : strstr(guid_at, "LID ");
    uint64_t guid, lid;
    int64_t node;

    if (lid_at == NULL || ibshift_scan_hex(guid_at, &guid) == NULL ||
        ibshift_scan_decimal(lid_at + 4, &lid) == NULL || lid > IBSHIFT_LID_MAX) {
        return ibshift_lines_fail(d->lines, d->err, -EINVAL,
                                  "wants a switch: \"NAME\", VENDOR, 0xGUID, LID NUMBER");
    }
    node = node_of(d, guid, name);
    if (node < 0) {
        return (int)node;
    }
    if (d->nodes[node].is_described) {
        return ibshift_lines_fail(d->lines, d->err, -EEXIST, "'%s' appears twice", name);
    }
    d->nodes[node].kind = IBSHIFT_NODE_SWITCH;
    d->nodes[node].is_described = true;
    d->nodes[node].lid = (unsigned)lid;
    d->current = (uint32_t)node;
    return 0;
}

static bool is_named(const char *cell, size_t length, const char *name)
{
    while (length > 0 && cell[length - 1] == ' ') {
        length--;
    }
    return strlen(name) == length && strncmp(cell, name, length) == 0;
}

static int read_columns(struct ibshift_rows *d, const char *line)
{
    static const char *const names[COLUMNS] = {
        "IB#", "Sta", "LWA", "LSA", "Neighbor Guid", "N#", "NLID", "Neighbor Description"};

    for (int c = 0; c < COLUMNS; c++) {
        d->column[c] = -1;
    }
    for (int at = 0;; at++) {
        size_t length;

        line = ibshift_scan_blanks(line);
        length = strcspn(line, ":");
        for (int c = 0; c < COLUMNS; c++) {
            if (is_named(line, length, names[c])) {
                d->column[c] = at;
            }
        }
        if (line[length] == '\0') {
            break;
        }
        line += length + 1;
    }
    for (int c = 0; c < COLUMNS; c++) {
        if (d->column[c] < 0) {
            return ibshift_lines_fail(d->lines, d->err, -EINVAL, "no column '%s'", names[c]);
        }
    }
    return 0;
}

/* What begins at the column, after blanks; NULL: the row ends before. */
static const char *cell(const char *line, int column)
{
    for (int i = 0; i < column; i++) {
        line = strchr(line, ':');
        if (line == NULL) {
            return NULL;
        }
        line++;
    }
    return ibshift_scan_blanks(line);
}

static struct ibshift_rate rate_of(const char *width, const char *speed)
{
    double lanes = strtod(width, NULL), lane = strtod(speed, NULL);

    return lanes >= 1 && lanes <= 12 && lane > 0 && lane < 1000
               ? ibshift_rate_of_lanes((unsigned)lanes, lane * 1000)
               : IBSHIFT_NO_RATE;
}

static int add_cable(struct ibshift_rows *d, const struct ibshift_rows_cable *cable)
{
    struct ibshift_rows_cable *moved = grown(d->cables, d->cable_count, sizeof(*moved));

    if (moved == NULL) {
        return ibshift_lines_fail(d->lines, d->err, -ENOMEM, "no memory for more cables");
    }
    d->cables = moved;
    d->cables[d->cable_count++] = *cable;
    return 0;
}

static void raise_ports(struct ibshift_rows_node *node, unsigned port)
{
    node->ports = node->ports < port ? port : node->ports;
}

/* The other end of a row, from its GUID on. */
static int read_remote(struct ibshift_rows *d, const char *const *at,
                       struct ibshift_rows_cable *cable)
{
    uint64_t guid, remote, lid;
    int64_t node;
    char name[512];

    if (ibshift_scan_hex(at[GUID], &guid) == NULL ||
        ibshift_scan_decimal(at[REMOTE], &remote) == NULL || remote < 1 ||
        remote > IBSHIFT_PORT_MAX || ibshift_scan_decimal(at[LID], &lid) == NULL ||
        lid > IBSHIFT_LID_MAX || ibshift_scan_quoted(at[NAME], name, sizeof(name)) == NULL) {
        return ibshift_lines_fail(d->lines, d->err, -EINVAL,
                                  "wants the neighbor's GUID, port, LID and description");
    }
    node = node_of(d, guid, name);
    if (node < 0) {
        return (int)node;
    }
    cable->remote = (uint32_t)node;
    cable->remote_port = (unsigned)remote;
    cable->remote_lid = (unsigned)lid;
    raise_ports(&d->nodes[node], cable->remote_port);
    return add_cable(d, cable);
}

static int read_port(struct ibshift_rows *d, const char *line)
{
    const char *at[COLUMNS];
    struct ibshift_rows_cable cable = {.node = d->current, .line = d->lines->number};
    uint64_t port;

    for (int c = 0; c < COLUMNS; c++) {
        at[c] = d->column[c] < 0 ? NULL : cell(line, d->column[c]);
        if (at[c] == NULL) {
            return ibshift_lines_fail(d->lines, d->err, -EINVAL,
                                      "fewer columns than the heading above has, or no heading");
        }
    }
    if (ibshift_scan_decimal(at[PORT], &port) == NULL || port < 1 || port > IBSHIFT_PORT_MAX) {
        return ibshift_lines_fail(d->lines, d->err, -EINVAL, "wants a port from 1 to %d",
                                  IBSHIFT_PORT_MAX);
    }
    cable.port = (unsigned)port;
    raise_ports(&d->nodes[d->current], cable.port);
    if (strncmp(at[GUID], "0x", 2) != 0 || strncmp(at[STATE], "DOWN", 4) == 0) {
        return 0; /* nothing is at the port */
    }
    cable.rate = rate_of(at[WIDTH], at[SPEED]);
    return read_remote(d, at, &cable);
}

/* "SW   LID PORT 0xGUID" */
static const char *scan_end(const char *at, struct ibshift_rows_end *end)
{
    end->kind = strncmp(at, "SW ", 3) == 0   ? IBSHIFT_NODE_SWITCH
                : strncmp(at, "CA ", 3) == 0 ? IBSHIFT_NODE_HCA
                                             : IBSHIFT_NODE_OTHER;
    at = at[0] == '\0' || at[1] == '\0' ? NULL : ibshift_scan_decimal(at + 2, &end->lid);
    at = at == NULL ? NULL : ibshift_scan_decimal(at, &end->port);
    at = at == NULL ? NULL : ibshift_scan_hex(at, &end->guid);
    return at != NULL && end->lid <= IBSHIFT_LID_MAX && end->port >= 1 &&
                   end->port <= IBSHIFT_PORT_MAX
               ? at
               : NULL;
}

int64_t ibshift_rows_add(struct ibshift_rows *d, const struct ibshift_rows_end *end)
{
    char name[512];
    int64_t node;

    snprintf(name, sizeof(name), "%.*s", end->length, end->name);
    node = node_of(d, end->guid, name);
    if (node >= 0) {
        d->nodes[node].kind =
            d->nodes[node].kind == IBSHIFT_NODE_HCA ? end->kind : d->nodes[node].kind;
        d->nodes[node].lid = end->lid != 0 ? (unsigned)end->lid : d->nodes[node].lid;
        raise_ports(&d->nodes[node], (unsigned)end->port);
    }
    return node;
}

int ibshift_rows_join(struct ibshift_rows *d, const struct ibshift_rows_end *near,
                      const struct ibshift_rows_end *far, struct ibshift_rate rate)
{
    struct ibshift_rows_cable cable = {.line = d->lines->number,
                                       .port = (unsigned)near->port,
                                       .remote_port = (unsigned)far->port,
                                       .lid = (unsigned)near->lid,
                                       .remote_lid = (unsigned)far->lid,
                                       .rate = rate};
    int64_t a = ibshift_rows_add(d, near), b = a < 0 ? a : ibshift_rows_add(d, far);

    if (b < 0) {
        return (int)b;
    }
    cable.node = (uint32_t)a;
    cable.remote = (uint32_t)b;
    return add_cable(d, &cable);
}

static const char bad_row[] = "wants a row: SW|CA LID PORT 0xGUID WIDTH SPEED [- SW|CA LID PORT "
                              "0xGUID ( 'NAME' - 'NAME' )]";

static int read_pair(struct ibshift_rows *d, struct ibshift_rows_end *near, const char *at,
                     const char *far_at)
{
    struct ibshift_rows_end far;
    const char *rest = scan_end(ibshift_scan_blanks(far_at), &far);
    const char *from = rest == NULL ? NULL : strstr(rest, "( '");
    const char *middle = from == NULL ? NULL : strstr(from, "' - '");
    const char *end = middle == NULL ? NULL : strstr(middle + 5, "' )");
    char width[8] = "", speed[8] = "", rate[20];

    if (end == NULL || sscanf(at, " %7[0-9x] %7s", width, speed) != 2) {
        return ibshift_lines_fail(d->lines, d->err, -EINVAL, "%s", bad_row);
    }
    near->name = from + 3;
    near->length = (int)(middle - near->name);
    far.name = middle + 5;
    far.length = (int)(end - far.name);
    snprintf(rate, sizeof(rate), "%s%s", width, speed);
    return ibshift_rows_join(d, near, &far, ibshift_rate_parse(rate));
}

static int read_report(struct ibshift_rows *d, const char *line)
{
    struct ibshift_rows_end near;
    const char *at = scan_end(line, &near), *joined = at == NULL ? NULL : strstr(at, " - ");
    const char *name = at == NULL ? NULL : strchr(at, '\''), *end;
    int64_t node;

    if (name == NULL) {
        return ibshift_lines_fail(d->lines, d->err, -EINVAL, "%s", bad_row);
    }
    d->has_port_guids = true;
    if (joined != NULL && joined < name) {
        return read_pair(d, &near, at, joined + 3);
    }
    end = strrchr(name + 1, '\'');
    near.name = name + 1;
    near.length = (int)(end != NULL ? end - near.name : (long)strlen(near.name));
    node = ibshift_rows_add(d, &near);
    return node < 0 ? (int)node : 0;
}

static bool is_report(const char *line)
{
    return strncmp(line, "SW ", 3) == 0 || strncmp(line, "CA ", 3) == 0 ||
           strncmp(line, "RT ", 3) == 0;
}

static int read_line(struct ibshift_rows *d)
{
    const char *line = d->lines->text;

    if (is_report(line)) {
        return read_report(d, line);
    }
    if (strncmp(line, "DR path ", 8) == 0 || strncmp(line, "ibwarn:", 7) == 0) {
        return 0; /* --show */
    }
    if (line[0] == '"') {
        return read_switch(d, line);
    }
    if (line[0] == '#') {
        return strstr(line, "Neighbor Guid") == NULL ? 0 : read_columns(d, line);
    }
    return line[0] == '\0' || line[0] == '-' || d->current == d->node_count ? 0
                                                                            : read_port(d, line);
}

static int add_nodes(struct ibshift_rows *d)
{
    struct ibshift_error reason;

    for (uint32_t i = 0; i < d->node_count; i++) {
        struct ibshift_rows_node *n = &d->nodes[i];
        int rc;

        n->added = ibshift_fabric_add_node(d->fabric, n->kind, n->guid, n->name, n->ports, &reason);
        rc = n->added < 0 ? (int)n->added
             : n->kind == IBSHIFT_NODE_SWITCH && n->lid != 0
                 ? ibshift_fabric_set_lid(d->fabric, (uint32_t)n->added, 0, n->lid, 0, &reason)
                 : 0;
        if (rc != 0) {
            return ibshift_lines_fail(d->lines, d->err, rc, "%s", reason.text);
        }
    }
    return 0;
}

/* A report of ports names the port's GUID, ibdiagnet the node's. That of its first port is the same
 * in adapters since ConnectX-4; further ports of one adapter are those of older ones, where it is
 * one more per port. */
static int set_adapter(struct ibshift_rows *d, const struct ibshift_rows_node *n, unsigned number,
                       unsigned lid, struct ibshift_error *reason)
{
    uint32_t port = ibshift_node_port(d->fabric, (uint32_t)n->added, number);
    int rc;

    if (n->kind == IBSHIFT_NODE_SWITCH) {
        return 0;
    }
    rc = ibshift_fabric_set_port_guid(
        d->fabric, port, d->has_port_guids || n->ports == 1 ? n->guid : n->guid + number);
    if (rc != 0) {
        return ibshift_fail(reason, rc, "the GUID of port %u of '%s' is another's", number,
                            n->name);
    }
    return lid == 0 ? 0
                    : ibshift_fabric_set_lid(d->fabric, (uint32_t)n->added, number, lid, 0, reason);
}

int ibshift_rows_finish(struct ibshift_rows *d)
{
    int rc = add_nodes(d);

    for (uint32_t i = 0; rc == 0 && i < d->cable_count; i++) {
        const struct ibshift_rows_cable *c = &d->cables[i];
        const struct ibshift_rows_node *near = &d->nodes[c->node], *far = &d->nodes[c->remote];
        uint32_t from = ibshift_node_port(d->fabric, (uint32_t)near->added, c->port);
        uint32_t to = ibshift_node_port(d->fabric, (uint32_t)far->added, c->remote_port);
        struct ibshift_error reason;

        rc = set_adapter(d, near, c->port, c->lid, &reason);
        rc = rc == 0 ? set_adapter(d, far, c->remote_port, c->remote_lid, &reason) : rc;
        rc = rc == 0 ? ibshift_fabric_add_link(d->fabric, from, to, c->rate, &reason) : rc;
        if (rc != 0) {
            d->lines->number = c->line;
            ibshift_lines_fail(d->lines, d->err, rc, "%s", reason.text);
        }
    }
    if (rc == 0 && d->fabric->node_count == 0) {
        return ibshift_lines_fail(d->lines, d->err, -ENODATA, "no port in the file");
    }
    return rc;
}

void ibshift_rows_free(struct ibshift_rows *d)
{
    for (uint32_t i = 0; i < d->node_count; i++) {
        free(d->nodes[i].name);
    }
    free(d->nodes);
    free(d->cables);
    ibshift_map64_free(&d->by_guid);
}

int ibshift_read_rows(struct ibshift_lines *lines, struct ibshift_fabric *f,
                      struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    struct ibshift_rows d = {.lines = lines, .fabric = f, .err = err};
    int rc;

    (void)warnings;
    memset(d.column, 0xff, sizeof(d.column)); /* -1: no heading yet */
    while ((rc = ibshift_lines_next(lines, err)) > 0) {
        rc = read_line(&d);
        if (rc != 0) {
            break;
        }
    }
    rc = rc == 0 ? ibshift_rows_finish(&d) : rc;
    ibshift_rows_free(&d);
    return rc;
}
