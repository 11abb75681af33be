/* ibnetdiscover's output and ibsim's netlists: records of a node and its cables. */
#include "fabric/graph/rate.h"
#include "fabric/read/draft.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct netlist {
    struct ibshift_draft draft;
    struct ibshift_lines *lines;
    uint64_t next_guid[3]; /* by kind: what ibsim gives to nodes whose GUID is not said */
    /* Of the record: */
    uint64_t key, guid; /* 0: of none */
    uint64_t ports;
    enum ibshift_node_kind kind;
};

/* Of the node's id. */
static uint64_t key_of(const char *id)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    while (*id != '\0') {
        hash = (hash ^ (unsigned char)*id++) * 0x100000001b3ull;
    }
    return hash != 0 ? hash : 1;
}

/* Words that begin a line, a node or the GUID of the next one. */
static const struct {
    const char *word;
    enum ibshift_node_kind kind;
    bool is_guid;
} words[] = {{"Switch", IBSHIFT_NODE_SWITCH, false},
             {"Hca", IBSHIFT_NODE_HCA, false},
             {"Ca", IBSHIFT_NODE_HCA, false},
             {"Rt", IBSHIFT_NODE_OTHER, false},
             {"switchguid=", IBSHIFT_NODE_SWITCH, true},
             {"caguid=", IBSHIFT_NODE_HCA, true},
             {"hcaguids=", IBSHIFT_NODE_HCA, true},
             {"rtguid=", IBSHIFT_NODE_OTHER, true}};

/* "lid N lmc M"; 0 where they are not said. */
static int scan_lid(const struct netlist *n, const char *at, uint64_t *lid, unsigned *lmc)
{
    uint64_t value = 0;

    if (ibshift_scan(at, "%*lid %u", lid) == NULL || *lid == 0) {
        *lid = 0;
        return 0;
    }
    if (ibshift_scan(at, "%*lmc %u", &value) == NULL) {
        value = 0;
    }
    *lmc = (unsigned)value;
    return *lid + (UINT64_C(1) << (value & 7)) - 1 <= IBSHIFT_LID_MAX && value <= IBSHIFT_LMC_MAX
               ? 0
               : ibshift_lines_fail(n->lines, -ERANGE,
                                    "LID %" PRIu64 " with LMC %" PRIu64 " is out of range", *lid,
                                    value);
}

static int read_node(struct netlist *n, enum ibshift_node_kind kind, const char *at)
{
    uint64_t ports, lid = 0, guid = n->next_guid[kind];
    char id[256], description[512] = "";
    struct ibshift_draft_node *node;
    unsigned lmc = 0;
    const char *rest;

    at = ibshift_scan(at, "%u%q", &ports, id, sizeof(id));
    if (at == NULL || ports > IBSHIFT_PORT_MAX) {
        return ibshift_lines_fail(n->lines, -EINVAL, "wants: Switch|Ca PORTS(1-%d) \"ID\"",
                                  IBSHIFT_PORT_MAX);
    }
    /* In quotes after '#', or an old one without up to where the port begins; else the id. */
    rest = ibshift_scan(at, "%*#%q", description, sizeof(description));
    at = rest != NULL ? rest : at;
    if (strchr("SHR", id[0]) != NULL && id[1] == '-' && strlen(id) == 18) {
        ibshift_scan_hex(id + 2, &guid);
    }
    n->next_guid[kind] = guid + (kind == IBSHIFT_NODE_SWITCH ? 1 : ports + 1);
    if (kind == IBSHIFT_NODE_SWITCH && scan_lid(n, at, &lid, &lmc) != 0) {
        return -ERANGE;
    }
    rest = description[0] != '\0' ? description : id;
    n->key = key_of(id);
    node = ibshift_draft_node(&n->draft, n->key, kind, rest, strlen(rest), 0);
    if (node == NULL) {
        return -ENOMEM;
    }
    if (node->is_described) {
        return ibshift_lines_fail(n->lines, -EEXIST,
                                  "GUID 0x%016" PRIx64 " of node \"%s\" appears twice", guid, id);
    }
    node->is_described = true;
    node->guid = guid;
    node->ports = (unsigned)ports;
    node->lid = (unsigned)lid;
    node->lmc = lmc;
    n->guid = guid;
    n->ports = ports;
    n->kind = kind;
    return 0;
}

/* "[N]", then "(guid)" or "[ext N]". */
static const char *scan_port(const char *at, uint64_t *port, uint64_t *guid)
{
    const char *next = ibshift_scan(at, "[%u]", port);

    while (next != NULL && (*next == '(' || ibshift_scan_word(next, "[ext"))) {
        at = next;
        next = *at == '(' ? ibshift_scan(at, "(%x)", guid) : ibshift_scan(at, "%*]");
    }
    return next;
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

static int read_port(struct netlist *n, const char *line)
{
    struct ibshift_draft_end near = {.key = n->key}, far = {.port = 1};
    struct ibshift_rate rate = IBSHIFT_NO_RATE;
    const char *at = scan_port(line, &near.port, &near.guid);
    char id[256];

    at = ibshift_scan(at, "%q ", id, sizeof(id));
    at = at != NULL && *at == '[' ? scan_port(at, &far.port, &(uint64_t){0}) : at;
    if (at == NULL || near.port < 1 || near.port > n->ports || far.port < 1 ||
        far.port > IBSHIFT_PORT_MAX) {
        return ibshift_lines_fail(
            n->lines, -EINVAL, "wants a cable: [PORT] \"ID\"[PORT], with PORT from 1 to %" PRIu64,
            n->ports);
    }
    far.key = key_of(id);
    if (n->kind != IBSHIFT_NODE_SWITCH && near.guid == 0) {
        near.guid = n->guid + near.port;
    }
    at = strchr(at, '#');
    if (at != NULL) {
        rate = rate_in(at);
    }
    if (n->kind != IBSHIFT_NODE_SWITCH && ibshift_scan(at, "# lid ") != NULL &&
        scan_lid(n, at, &near.lid, &near.lmc) != 0) { /* its own comes before the other end's */
        return -ERANGE;
    }
    return ibshift_draft_join(&n->draft, &near, &far, rate);
}

static bool is_harmless(const char *line)
{
    static const char *const harmless[] = {
        "vendid=", "devid=",  "sysimgguid=", "width=", "speed=",     "Chassis",
        "ibwarn:", "DR path", "\t",          " ",      "Non-Chassis"};

    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (ibshift_scan_word(line, harmless[i]) != NULL) {
            return true;
        }
    }
    return line[0] == '\0';
}

static int read_line(void *context)
{
    struct netlist *n = context;
    const char *line = n->lines->text;

    if (line[0] == '[' && n->key != 0) {
        return read_port(n, line);
    }
    if (line[0] == '#') {
        return 0;
    }
    n->key = 0; /* anything else ends the record */
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *rest = ibshift_scan_word(line, words[i].word);
        uint64_t guid;

        if (rest != NULL && words[i].is_guid && ibshift_scan_hex(rest, &guid) != NULL) {
            n->next_guid[words[i].kind] = guid;
            return 0;
        }
        if (rest != NULL && !words[i].is_guid && (*rest == ' ' || *rest == '\t')) {
            return read_node(n, words[i].kind, rest);
        }
    }
    return is_harmless(line) ? 0
                             : ibshift_lines_fail(n->lines, -EINVAL,
                                                  "'%.40s' is not a line of a netlist: wants "
                                                  "Switch, Ca, Hca, Rt or [PORT]",
                                                  line);
}

int ibshift_read_netlist(struct ibshift_lines *lines, struct ibshift_fabric *f,
                         struct ibshift_warnings *warnings)
{
    struct netlist n = {.draft = {.lines = lines, .fabric = f},
                        .lines = lines,
                        .next_guid = {0x100000, 0x200000, 0x300000}};
    int rc = ibshift_draft_read(&n.draft, read_line, &n, "node");
    uint32_t linked = 0;

    for (uint32_t p = 0; rc == 0 && p < f->port_count; p++) {
        linked += f->ports[p].peer != IBSHIFT_NO_PORT;
    }
    if (rc == 0 && linked > n.draft.cable_count) {
        ibshift_warn(warnings, "%s: %u cables are listed at one end only", lines->name,
                     linked - n.draft.cable_count);
    }
    return rc;
}
