/* ibnetdiscover's output and ibsim's netlists: records of a node and its cables. */
#include "fabric/graph/rate.h"
#include "fabric/read/read.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cable {
    uint64_t remote_key; /* of the node's id */
    uint32_t port;
    uint32_t line;
    struct ibshift_rate rate;
    uint8_t remote_port;
};

struct netlist {
    struct ibshift_lines *lines;
    struct ibshift_fabric *fabric;
    struct ibshift_error *err;
    struct ibshift_map64 by_id;
    struct cable *cables;
    uint32_t cable_count, cable_room;
    int64_t node;          /* of the record, or -1 */
    uint64_t next_guid[3]; /* by kind: what ibsim gives to nodes whose GUID is not said */
    unsigned ports_seen;
};

static uint64_t key_of(const char *id)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    while (*id != '\0') {
        hash = (hash ^ (unsigned char)*id++) * 0x100000001b3ull;
    }
    return hash != 0 ? hash : 1;
}

static int kind_of(const char *line, const char **rest)
{
    static const struct {
        const char *word;
        enum ibshift_node_kind kind;
    } kinds[] = {{"Switch", IBSHIFT_NODE_SWITCH},
                 {"Hca", IBSHIFT_NODE_HCA},
                 {"Ca", IBSHIFT_NODE_HCA},
                 {"Rt", IBSHIFT_NODE_OTHER}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t length = strlen(kinds[i].word);

        if (strncmp(line, kinds[i].word, length) == 0 &&
            (line[length] == ' ' || line[length] == '\t')) {
            *rest = line + length;
            return (int)kinds[i].kind;
        }
    }
    return -1;
}

/* After '#': "description" in quotes, or an old one without up to where the port begins; else the
 * id. */
static const char *description_of(const char *at, const char *id, char *text, size_t size)
{
    const char *hash = strchr(at, '#');
    const char *rest = hash == NULL ? NULL : ibshift_scan_quoted(hash + 1, text, size);

    if (rest == NULL || text[0] == '\0') {
        snprintf(text, size, "%s", id);
    }
    return rest != NULL ? rest : at;
}

static uint64_t word_number(const char *at, const char *word)
{
    const char *found = strstr(at, word);
    uint64_t value = 0;

    return found == NULL || ibshift_scan_decimal(found + strlen(word), &value) == NULL ? 0 : value;
}

static int set_lid(struct netlist *n, unsigned port, const char *at)
{
    uint64_t lid = word_number(at, "lid "), lmc = word_number(at, "lmc ");
    struct ibshift_error reason;

    if (lid == 0) {
        return 0;
    }
    if (lid > IBSHIFT_LID_MAX || lmc > IBSHIFT_LMC_MAX ||
        ibshift_fabric_set_lid(n->fabric, (uint32_t)n->node, port, (unsigned)lid, (unsigned)lmc,
                               &reason) != 0) {
        return ibshift_lines_fail(n->lines, n->err, -ERANGE,
                                  "LID %" PRIu64 " with LMC %" PRIu64 " is out of range", lid, lmc);
    }
    return 0;
}

static int read_node(struct netlist *n, enum ibshift_node_kind kind, const char *at)
{
    char id[256], description[512];
    struct ibshift_error reason;
    uint64_t ports, guid = n->next_guid[kind];

    at = ibshift_scan_decimal(at, &ports);
    at = at == NULL ? NULL : ibshift_scan_quoted(at, id, sizeof(id));
    if (at == NULL || ports > IBSHIFT_PORT_MAX) {
        return ibshift_lines_fail(n->lines, n->err, -EINVAL, "wants: Switch|Ca PORTS(1-%d) \"ID\"",
                                  IBSHIFT_PORT_MAX);
    }
    at = description_of(at, id, description, sizeof(description));
    if ((id[0] == 'S' || id[0] == 'H' || id[0] == 'R') && id[1] == '-' && strlen(id) == 18) {
        ibshift_scan_hex(id + 2, &guid);
    }
    n->next_guid[kind] = guid + (kind == IBSHIFT_NODE_SWITCH ? 1 : ports + 1);
    n->node = ibshift_fabric_add_node(
        n->fabric,
        kind == IBSHIFT_NODE_HCA && ibshift_is_aggregation_node(description) ? IBSHIFT_NODE_OTHER
                                                                             : kind,
        guid, description, (unsigned)ports, &reason);
    if (n->node < 0) {
        return ibshift_lines_fail(n->lines, n->err, (int)n->node, "%s", reason.text);
    }
    n->ports_seen = 0;
    if (ibshift_map64_add(&n->by_id, key_of(id), (uint32_t)n->node) != 0) {
        return ibshift_lines_fail(n->lines, n->err, -EEXIST, "node \"%s\" appears twice", id);
    }
    return kind == IBSHIFT_NODE_SWITCH ? set_lid(n, 0, at) : 0;
}

static int add_cable(struct netlist *n, const struct cable *cable)
{
    if (n->cable_count == n->cable_room) {
        uint32_t room = n->cable_room == 0 ? 256 : 2 * n->cable_room;
        struct cable *moved = realloc(n->cables, room * sizeof(*moved));

        if (moved == NULL) {
            return ibshift_lines_fail(n->lines, n->err, -ENOMEM, "no memory for more cables");
        }
        n->cables = moved;
        n->cable_room = room;
    }
    n->cables[n->cable_count++] = *cable;
    return 0;
}

/* "(guid)" or "[ext N]" after a port's number. */
static const char *skip_marks(const char *at, uint64_t *guid)
{
    for (;;) {
        if (*at == '(') {
            uint64_t value;
            const char *end = ibshift_scan_hex(at + 1, &value);

            if (end == NULL || *end != ')') {
                return NULL;
            }
            *guid = value;
            at = end + 1;
        } else if (strncmp(at, "[ext", 4) == 0 && strchr(at, ']') != NULL) {
            at = strchr(at, ']') + 1;
        } else {
            return at;
        }
    }
}

static struct ibshift_rate rate_in(const char *at)
{
    for (const char *x = strchr(at, 'x'); x != NULL; x = strchr(x + 1, 'x')) {
        const char *start = x;
        struct ibshift_rate rate;

        while (start > at && isdigit((unsigned char)start[-1])) {
            start--;
        }
        rate = ibshift_rate_parse(start);
        if (rate.mbps != 0) {
            return rate;
        }
    }
    return IBSHIFT_NO_RATE;
}

/* What follows the remote end; in an HCA's line that is its own LID first. */
static int read_port_tail(struct netlist *n, unsigned port, struct cable *cable, const char *at)
{
    const char *comment = strchr(at, '#');
    enum ibshift_node_kind kind = n->fabric->nodes[n->node].kind;

    if (comment == NULL) {
        return 0;
    }
    cable->rate = rate_in(comment);
    comment = ibshift_scan_blanks(comment + 1);
    return kind != IBSHIFT_NODE_SWITCH && strncmp(comment, "lid ", 4) == 0
               ? set_lid(n, port, comment)
               : 0;
}

static int bad_port(struct netlist *n)
{
    return ibshift_lines_fail(n->lines, n->err, -EINVAL,
                              "wants a cable: [PORT] \"ID\"[PORT], with PORT from 1 to %u",
                              n->fabric->nodes[n->node].port_count);
}

static int read_port(struct netlist *n, const char *line)
{
    struct ibshift_fabric *f = n->fabric;
    char id[256];
    uint64_t port, remote = 1, guid = 0, remote_guid = 0;
    struct cable cable = {.line = n->lines->number};
    const char *at = ibshift_scan_decimal(line + 1, &port);

    at = at == NULL || *at != ']' ? NULL : skip_marks(at + 1, &guid);
    at = at == NULL ? NULL : ibshift_scan_quoted(at, id, sizeof(id));
    if (at == NULL || port < 1 || port > f->nodes[n->node].port_count) {
        return bad_port(n);
    }
    at = ibshift_scan_blanks(at);
    if (*at == '[') {
        at = ibshift_scan_decimal(at + 1, &remote);
        at = at == NULL || *at != ']' ? NULL : skip_marks(at + 1, &remote_guid);
        if (at == NULL || remote < 1 || remote > IBSHIFT_PORT_MAX) {
            return bad_port(n);
        }
    }
    cable.port = ibshift_node_port(f, (uint32_t)n->node, (unsigned)port);
    cable.remote_key = key_of(id);
    cable.remote_port = (uint8_t)remote;
    if (f->nodes[n->node].kind != IBSHIFT_NODE_SWITCH) {
        guid = guid != 0 ? guid : f->nodes[n->node].guid + port;
        if (ibshift_fabric_set_port_guid(f, cable.port, guid) != 0) {
            return ibshift_lines_fail(n->lines, n->err, -EEXIST,
                                      "port GUID 0x%" PRIx64 " appears twice", guid);
        }
    }
    if (read_port_tail(n, (unsigned)port, &cable, at) != 0) {
        return -ERANGE;
    }
    n->ports_seen++;
    return add_cable(n, &cable);
}

/* "switchguid=0x..(..)", "caguid=0x..": for the next node. */
static bool read_guid(struct netlist *n, const char *line)
{
    static const struct {
        const char *word;
        enum ibshift_node_kind kind;
    } words[] = {{"switchguid=", IBSHIFT_NODE_SWITCH},
                 {"caguid=", IBSHIFT_NODE_HCA},
                 {"hcaguids=", IBSHIFT_NODE_HCA},
                 {"rtguid=", IBSHIFT_NODE_OTHER}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i].word);
        uint64_t guid;

        if (strncmp(line, words[i].word, length) == 0 &&
            ibshift_scan_hex(line + length, &guid) != NULL) {
            n->next_guid[words[i].kind] = guid;
            return true;
        }
    }
    return false;
}

static bool is_harmless(const char *line)
{
    static const char *const words[] = {
        "vendid=", "devid=",  "sysimgguid=", "width=", "speed=",     "Chassis",
        "ibwarn:", "DR path", "\t",          " ",      "Non-Chassis"};

    if (line[0] == '\0' || line[0] == '#') {
        return true;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strncmp(line, words[i], strlen(words[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int read_line(struct netlist *n)
{
    const char *line = n->lines->text, *rest;
    int kind = kind_of(line, &rest);

    if (kind >= 0) {
        return read_node(n, (enum ibshift_node_kind)kind, rest);
    }
    if (line[0] == '[' && n->node >= 0) {
        return read_port(n, line);
    }
    if (line[0] == '#') {
        return 0;
    }
    n->node = -1; /* anything else ends the record */
    if (read_guid(n, line) || is_harmless(line)) {
        return 0;
    }
    return ibshift_lines_fail(
        n->lines, n->err, -EINVAL,
        "'%.40s' is not a line of a netlist: wants Switch, Ca, Hca, Rt or [PORT]", line);
}

static int connect_cable(struct netlist *n, const struct cable *cable)
{
    struct ibshift_fabric *f = n->fabric;
    uint32_t remote = ibshift_map64_get(&n->by_id, cable->remote_key);
    struct ibshift_error reason;
    int rc;

    n->lines->number = cable->line;
    if (remote == IBSHIFT_MAP_MISS) {
        return ibshift_lines_fail(n->lines, n->err, -ENOENT,
                                  "the node at the other end is not in the file (truncated?)");
    }
    if (cable->remote_port > f->nodes[remote].port_count) {
        return ibshift_lines_fail(n->lines, n->err, -ERANGE, "'%s' has no port %u",
                                  ibshift_node_name(f, remote), cable->remote_port);
    }
    rc = ibshift_fabric_add_link(f, cable->port, ibshift_node_port(f, remote, cable->remote_port),
                                 cable->rate.mbps != 0 ? cable->rate : f->ports[cable->port].rate,
                                 &reason);
    return rc == 0 ? 0 : ibshift_lines_fail(n->lines, n->err, rc, "%s", reason.text);
}

static int connect_all(struct netlist *n, struct ibshift_warnings *warnings)
{
    uint32_t linked = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < n->cable_count; i++) {
        rc = connect_cable(n, &n->cables[i]);
    }
    for (uint32_t p = 0; rc == 0 && p < n->fabric->port_count; p++) {
        linked += n->fabric->ports[p].peer != IBSHIFT_NO_PORT;
    }
    if (rc == 0 && linked > n->cable_count) {
        ibshift_warn(warnings, "%s: %u cables are listed at one end only", n->lines->name,
                     linked - n->cable_count);
    }
    return rc;
}

int ibshift_read_netlist(struct ibshift_lines *lines, struct ibshift_fabric *f,
                         struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    struct netlist n = {.lines = lines,
                        .fabric = f,
                        .err = err,
                        .node = -1,
                        .next_guid = {0x100000, 0x200000, 0x300000}};
    int rc;

    while ((rc = ibshift_lines_next(lines, err)) > 0) {
        rc = read_line(&n);
        if (rc != 0) {
            break;
        }
    }
    if (rc == 0) {
        rc = connect_all(&n, warnings);
    }
    if (rc == 0 && f->node_count == 0) {
        rc = ibshift_lines_fail(lines, err, -ENODATA, "no node in the file");
    }
    ibshift_map64_free(&n.by_id);
    free(n.cables);
    return rc;
}
