#include "fabric/graph/fabric.h"

#include <errno.h>
#include <inttypes.h>
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
    }
    free(f->lid_port);
    free(f);
}

/* array with room for needed elements, or NULL (array stays valid). */
static void *reserved(void *array, uint32_t *room, uint64_t needed, size_t element)
{
    uint64_t bigger = *room < 64 ? 64 : *room;
    void *moved;

    if (needed <= *room) {
        return array;
    }
    while (bigger < needed) {
        bigger += bigger / 2;
    }
    moved = bigger <= UINT32_MAX ? realloc(array, bigger * element) : NULL;
    if (moved != NULL) {
        *room = (uint32_t)bigger;
    }
    return moved;
}

static int reserve_ports(struct ibshift_fabric *f, unsigned ports)
{
    void *moved = reserved(f->nodes, &f->node_room, (uint64_t)f->node_count + 1, sizeof(*f->nodes));

    if (moved == NULL) {
        return -ENOMEM;
    }
    f->nodes = moved;
    moved =
        reserved(f->ports, &f->port_room, (uint64_t)f->port_count + ports + 1, sizeof(*f->ports));
    if (moved == NULL) {
        return -ENOMEM;
    }
    f->ports = moved;
    return 0;
}

static int add_name(struct ibshift_fabric *f, const char *name, uint32_t *offset)
{
    size_t size = strlen(name) + 1;

    void *moved = reserved(f->names, &f->names_room, (uint64_t)f->names_size + size, 1);

    if (moved == NULL) {
        return -ENOMEM;
    }
    f->names = moved;
    memcpy(f->names + f->names_size, name, size);
    *offset = f->names_size;
    f->names_size += (uint32_t)size;
    return 0;
}

static void add_ports(struct ibshift_fabric *f, uint32_t node, unsigned ports)
{
    for (unsigned i = 0; i < ports; i++) {
        f->ports[f->port_count++] = (struct ibshift_port){
            .node = node, .peer = IBSHIFT_NO_PORT, .number = (uint8_t)(i + 1)};
    }
}

int64_t ibshift_fabric_add_node(struct ibshift_fabric *f, enum ibshift_node_kind kind,
                                uint64_t guid, const char *name, unsigned ports,
                                struct ibshift_error *err)
{
    uint32_t node = f->node_count;
    struct ibshift_node *n;
    int rc;

    if (ports > IBSHIFT_PORT_MAX) {
        return ibshift_fail(err, -EINVAL, "%u ports: a node has at most %d", ports,
                            IBSHIFT_PORT_MAX);
    }
    if (node >= IBSHIFT_NODES_MAX || f->port_count + ports > IBSHIFT_GRAPH_PORTS_MAX) {
        return ibshift_fail(err, -E2BIG, "more than %u nodes or %u ports: that is no subnet",
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
    if (reserve_ports(f, ports) != 0) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u nodes", node + 1);
    }
    n = &f->nodes[node];
    *n = (struct ibshift_node){.guid = guid,
                               .first_port = f->port_count,
                               .switch_index = IBSHIFT_NO_SWITCH,
                               .kind = (uint8_t)kind,
                               .port_count = (uint8_t)ports};
    if (add_name(f, name, &n->name) != 0) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u names", node + 1);
    }
    add_ports(f, node, ports);
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
