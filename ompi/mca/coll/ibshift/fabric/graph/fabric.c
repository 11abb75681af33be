#include "fabric/graph/fabric.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ibshift_fabric *ibshift_fabric_new(void)
{
    return calloc(1, sizeof(struct ibshift_fabric));
}

void ibshift_fabric_free(struct ibshift_fabric *f)
{
    if (f == NULL) {
        return;
    }
    ibshift_map64_free(&f->by_guid);
    if (f->image != NULL) {
        free(f->image);
    } else {
        free(f->nodes);
        free(f->ports);
        free(f->names);
        free(f->hosts);
        free(f->switches);
        free(f->lft);
        free(f->sl);
        free(f->sl_row);
    }
    free(f->lid_port);
    free(f);
}

int64_t ibshift_fabric_add_node(struct ibshift_fabric *f, enum ibshift_node_kind kind,
                                uint64_t guid, const char *name, unsigned ports,
                                struct ibshift_error *err)
{
    uint32_t node = f->node_count;
    struct ibshift_port *port;
    struct ibshift_node *n;
    char *text;
    int rc;

    if (ports > IBSHIFT_PORT_MAX) {
        return ibshift_fail(err, -EINVAL, "%u ports: a node has at most %d", ports,
                            IBSHIFT_PORT_MAX);
    }
    if (node >= IBSHIFT_NODES_MAX || f->port_count + ports > IBSHIFT_GRAPH_PORTS_MAX) {
        return ibshift_fail(err, -E2BIG, "more than %u nodes or %u ports: this cannot be a subnet",
                            IBSHIFT_NODES_MAX, IBSHIFT_GRAPH_PORTS_MAX);
    }
    rc = ibshift_map64_add(&f->by_guid, guid, node);
    if (rc != 0) {
        return ibshift_fail(err, rc,
                            rc == -EEXIST   ? "GUID 0x%016" PRIx64 " appears twice"
                            : rc == -EINVAL ? "GUID 0x%016" PRIx64 " is not a GUID"
                                            : "no memory for GUID 0x%016" PRIx64,
                            guid);
    }
    n = ibshift_room(&f->nodes, node, 1, sizeof(*n));
    port = ibshift_room(&f->ports, f->port_count, ports, sizeof(*port));
    text = ibshift_room(&f->names, f->names_size, (uint32_t)strlen(name) + 1, 1);
    if (n == NULL || port == NULL || text == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u nodes", node + 1);
    }
    *n = (struct ibshift_node){.guid = guid,
                               .name = f->names_size,
                               .first_port = f->port_count,
                               .switch_index = IBSHIFT_NO_SWITCH,
                               .kind = (uint8_t)kind,
                               .port_count = (uint8_t)ports};
    for (unsigned i = 0; i < ports; i++) {
        port[i] = (struct ibshift_port){
            .node = node, .peer = IBSHIFT_NO_PORT, .number = (uint8_t)(i + 1)};
    }
    strcpy(text, name);
    f->names_size += (uint32_t)strlen(name) + 1;
    f->port_count += ports;
    f->node_count++;
    return node;
}

int ibshift_fabric_add_link(struct ibshift_fabric *f, uint32_t port_a, uint32_t port_b,
                            struct ibshift_rate rate, struct ibshift_error *err)
{
    struct ibshift_port *a = &f->ports[port_a], *b = &f->ports[port_b];
    bool free_a = a->peer == IBSHIFT_NO_PORT, free_b = b->peer == IBSHIFT_NO_PORT;

    if (port_a == port_b || (!free_a && a->peer != port_b) || (!free_b && b->peer != port_a)) {
        const struct ibshift_port *taken = free_a ? b : a;

        return ibshift_fail(err, -EEXIST, "port %u of '%s' has two cables", taken->number,
                            ibshift_node_name(f, taken->node));
    }
    a->peer = port_b;
    b->peer = port_a;
    a->rate = b->rate = rate;
    return 0;
}

int ibshift_fabric_set_lid(struct ibshift_fabric *f, uint32_t node, unsigned port, unsigned lid,
                           unsigned lmc, struct ibshift_error *err)
{
    struct ibshift_node *n = &f->nodes[node];

    if (lmc > IBSHIFT_LMC_MAX || lid == 0 || lid + (1u << lmc) - 1 > IBSHIFT_LID_MAX) {
        return ibshift_fail(err, -ERANGE, "LID %u with LMC %u: unicast LIDs are 1 to %u", lid, lmc,
                            IBSHIFT_LID_MAX);
    }
    if (port > n->port_count || (port == 0) != (n->kind == IBSHIFT_NODE_SWITCH)) {
        return ibshift_fail(err, -EINVAL, "port %u of '%s' cannot have a LID", port,
                            ibshift_node_name(f, node));
    }
    if (port == 0) {
        n->lid = (uint16_t)lid;
        n->lmc = (uint8_t)lmc;
    } else {
        f->ports[n->first_port + port - 1].lid = (uint16_t)lid;
        f->ports[n->first_port + port - 1].lmc = (uint8_t)lmc;
    }
    return 0;
}

int ibshift_fabric_set_port_guid(struct ibshift_fabric *f, uint32_t port, uint64_t guid)
{
    int rc;

    if (f->ports[port].guid == guid) {
        return 0;
    }
    rc = ibshift_map64_add(&f->by_guid, guid, f->ports[port].node);
    if (rc == -EEXIST && ibshift_map64_get(&f->by_guid, guid) == f->ports[port].node) {
        rc = 0; /* port GUID = node GUID is allowed */
    }
    if (rc == 0) {
        f->ports[port].guid = guid;
    }
    return rc;
}

/* What is derived when the last node, link or LID is in. */

static bool is_host(const struct ibshift_fabric *f, uint32_t port)
{
    return f->nodes[f->ports[port].node].kind == IBSHIFT_NODE_HCA &&
           f->ports[port].peer != IBSHIFT_NO_PORT;
}

static void list_hosts(struct ibshift_fabric *f)
{
    uint32_t hosts = 0, switches = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        struct ibshift_node *node = &f->nodes[n];

        if (node->kind == IBSHIFT_NODE_SWITCH) {
            node->switch_index = switches;
            f->switches[switches++] = n;
        }
        for (uint32_t p = node->first_port; p < node->first_port + node->port_count; p++) {
            if (is_host(f, p)) {
                f->hosts[hosts++] = p;
            }
        }
    }
}

/* owner[lid] = node + 1; port: of an HCA, or IBSHIFT_NO_PORT. */
static int claim_lids(struct ibshift_fabric *f, uint32_t *owner, uint32_t node, uint32_t port,
                      unsigned lid, unsigned lmc, struct ibshift_error *err)
{
    for (unsigned i = lid; lid != 0 && i < lid + (1u << lmc); i++) {
        if (owner[i] != 0) {
            return ibshift_fail(err, -EEXIST, "LID %u belongs to both '%s' and '%s'", i,
                                ibshift_node_name(f, owner[i] - 1), ibshift_node_name(f, node));
        }
        owner[i] = node + 1;
        f->lid_port[i] = port;
    }
    return 0;
}

int ibshift_fabric_index(struct ibshift_fabric *f, struct ibshift_error *err)
{
    uint32_t *owner = calloc(IBSHIFT_LID_MAX + 1, sizeof(*owner));
    int rc = 0;

    free(f->lid_port);
    f->lid_port = malloc((IBSHIFT_LID_MAX + 1) * sizeof(*f->lid_port));
    if (owner == NULL || f->lid_port == NULL) {
        free(owner);
        return ibshift_fail(err, -ENOMEM, "no memory for the LIDs");
    }
    memset(f->lid_port, 0xff, (IBSHIFT_LID_MAX + 1) * sizeof(*f->lid_port));
    for (uint32_t n = 0; rc == 0 && n < f->node_count; n++) {
        rc = claim_lids(f, owner, n, IBSHIFT_NO_PORT, f->nodes[n].lid, f->nodes[n].lmc, err);
    }
    for (uint32_t p = 0; rc == 0 && p < f->port_count; p++) {
        rc = claim_lids(f, owner, f->ports[p].node, p, f->ports[p].lid, f->ports[p].lmc, err);
    }
    free(owner);
    return rc;
}

int ibshift_fabric_finish(struct ibshift_fabric *f, struct ibshift_error *err)
{
    f->host_count = f->switch_count = 0;
    for (uint32_t n = 0; n < f->node_count; n++) {
        f->switch_count += ibshift_node_is_switch(f, n);
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        f->host_count += is_host(f, p);
    }
    if (f->switch_count > IBSHIFT_LID_MAX || f->host_count > IBSHIFT_LID_MAX) {
        return ibshift_fail(err, -E2BIG, "%u switches, %u hosts: a subnet has at most %u LIDs",
                            f->switch_count, f->host_count, IBSHIFT_LID_MAX);
    }
    free(f->hosts);
    free(f->switches);
    f->hosts = calloc((size_t)f->host_count + 1, sizeof(*f->hosts));
    f->switches = calloc((size_t)f->switch_count + 1, sizeof(*f->switches));
    if (f->hosts == NULL || f->switches == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u nodes", f->node_count);
    }
    list_hosts(f);
    return ibshift_fabric_index(f, err);
}

int ibshift_fabric_tables_new(struct ibshift_fabric *f, struct ibshift_error *err)
{
    free(f->lft);
    f->lft_stride = IBSHIFT_LID_MAX + 1;
    f->lft = calloc((size_t)f->switch_count + 1, f->lft_stride);
    if (f->lft == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the tables of %u switches",
                            f->switch_count);
    }
    return 0;
}

uint32_t ibshift_fabric_highest_lid(const struct ibshift_fabric *f)
{
    uint32_t top = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        uint32_t last = f->nodes[n].lid + (1u << f->nodes[n].lmc) - 1;

        top = last > top ? last : top;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t last = f->ports[p].lid + (1u << f->ports[p].lmc) - 1;

        top = last > top ? last : top;
    }
    return top;
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
    return sum ^ (sum >> 32);
}

/* Of GUIDs, cables and LIDs: independent of the order of the source. */
static uint64_t graph_sum(const struct ibshift_fabric *f)
{
    uint64_t sum = 0;

    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];
        uint64_t one = mix(f->nodes[port->node].guid, port->number);

        if (port->peer != IBSHIFT_NO_PORT) {
            one = mix(one, f->nodes[f->ports[port->peer].node].guid);
            one = mix(one, f->ports[port->peer].number);
            sum += mix(one, port->lid + 65536ull * port->lmc);
        }
    }
    return sum;
}

static uint64_t tables_sum(const struct ibshift_fabric *f)
{
    uint64_t sum = 0;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        const uint8_t *row = f->lft + (size_t)s * f->lft_stride;
        uint64_t one = f->nodes[f->switches[s]].guid;

        for (uint32_t lid = 0; lid < f->lft_stride; lid += 8) {
            uint64_t word = 0;

            memcpy(&word, row + lid, f->lft_stride - lid < 8 ? f->lft_stride - lid : 8);
            one = mix(one, word);
        }
        sum += one;
    }
    return sum;
}

void ibshift_fabric_tables_finish(struct ibshift_fabric *f)
{
    uint32_t stride = ibshift_fabric_highest_lid(f) + 1;
    uint8_t *tight;

    f->guid_sum = graph_sum(f);
    if (f->lft == NULL) {
        return;
    }
    if (stride < f->lft_stride) {
        for (uint32_t s = 1; s < f->switch_count; s++) {
            memmove(f->lft + (size_t)s * stride, f->lft + (size_t)s * f->lft_stride, stride);
        }
        f->lft_stride = stride;
        tight = realloc(f->lft, (size_t)f->switch_count * stride + 1);
        f->lft = tight != NULL ? tight : f->lft;
    }
    f->tables_sum = tables_sum(f);
}

/* Looking nodes, hosts and links up by what people call them. */

uint32_t ibshift_fabric_find_guid(const struct ibshift_fabric *f, uint64_t guid)
{
    if (f->by_guid.size != 0) {
        uint32_t node = ibshift_map64_get(&f->by_guid, guid);

        return node == IBSHIFT_MAP_MISS ? IBSHIFT_NO_NODE : node;
    }
    for (uint32_t n = 0; n < f->node_count; n++) {
        if (f->nodes[n].guid == guid) {
            return n;
        }
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        if (f->ports[p].guid == guid && guid != 0) {
            return f->ports[p].node;
        }
    }
    return IBSHIFT_NO_NODE;
}

static int64_t host_of_guid(const struct ibshift_fabric *f, uint64_t guid)
{
    int64_t found = -ENOENT;

    for (uint32_t h = 0; h < f->host_count; h++) {
        const struct ibshift_port *port = &f->ports[f->hosts[h]];

        if (port->guid == guid) {
            return h;
        }
        if (f->nodes[port->node].guid == guid) {
            found = found == -ENOENT ? (int64_t)h : -EEXIST;
        }
    }
    return found;
}

/* port 0: any. */
static int64_t host_of_name(const struct ibshift_fabric *f, const char *name, size_t length,
                            unsigned port)
{
    int64_t whole = -ENOENT, first_word = -ENOENT;

    for (uint32_t h = 0; h < f->host_count; h++) {
        const char *host = ibshift_host_name(f, h);

        if (strncmp(host, name, length) != 0 ||
            (port != 0 && f->ports[f->hosts[h]].number != port)) {
            continue;
        }
        if (host[length] == '\0') {
            whole = whole == -ENOENT ? (int64_t)h : -EEXIST;
        } else if (host[length] == ' ') {
            first_word = first_word == -ENOENT ? (int64_t)h : -EEXIST;
        }
    }
    return whole != -ENOENT ? whole : first_word;
}

int64_t ibshift_fabric_find_host(const struct ibshift_fabric *f, const char *name)
{
    const char *slash = strrchr(name, '/');
    int64_t host;
    char *end;

    if (strncmp(name, "0x", 2) == 0) {
        uint64_t guid = strtoull(name, &end, 16);

        return *end == '\0' ? host_of_guid(f, guid) : -ENOENT;
    }
    host = host_of_name(f, name, strlen(name), 0);
    if (host == -ENOENT && slash != NULL && slash[1] >= '1' && slash[1] <= '9') {
        unsigned long port = strtoul(slash + 1, &end, 10);

        if (*end == '\0' && port <= IBSHIFT_PORT_MAX) {
            host = host_of_name(f, name, (size_t)(slash - name), (unsigned)port);
        }
    }
    return host;
}

uint32_t ibshift_fabric_host_of_lid(const struct ibshift_fabric *f, unsigned lid)
{
    uint32_t port = lid <= IBSHIFT_LID_MAX ? f->lid_port[lid] : IBSHIFT_NO_PORT;
    uint32_t low = 0, high = f->host_count;

    while (port != IBSHIFT_NO_PORT && low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (f->hosts[middle] == port) {
            return middle;
        }
        if (f->hosts[middle] < port) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return IBSHIFT_NO_HOST;
}

/*
 * "NAME port N", with the LID where another node has the same description, as all switches without
 * management have. Only what is printed pays for looking through the nodes.
 */
static int end_name(const struct ibshift_fabric *f, const struct ibshift_port *port, char *text,
                    size_t size)
{
    const struct ibshift_node *node = &f->nodes[port->node];
    const char *name = ibshift_node_name(f, port->node);
    unsigned lid = node->kind == IBSHIFT_NODE_SWITCH ? node->lid : port->lid;

    for (uint32_t n = 0; lid != 0 && n < f->node_count; n++) {
        if (n != port->node && strcmp(ibshift_node_name(f, n), name) == 0) {
            return snprintf(text, size, "%s (LID %u) port %u", name, lid, port->number);
        }
    }
    return snprintf(text, size, "%s port %u", name, port->number);
}

void ibshift_link_name(const struct ibshift_fabric *f, uint32_t link, char *text, size_t size)
{
    const struct ibshift_port *port = &f->ports[link];
    int length = end_name(f, port, text, size);

    if (port->peer != IBSHIFT_NO_PORT && length >= 0 && (size_t)length + 4 < size) {
        memcpy(text + length, " -> ", 5);
        end_name(f, &f->ports[port->peer], text + length + 4, size - (size_t)length - 4);
    }
}
