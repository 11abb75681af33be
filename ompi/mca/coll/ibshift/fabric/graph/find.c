/* Looking nodes, hosts and links up by what people call them. */
#include "fabric/graph/fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void ibshift_link_name(const struct ibshift_fabric *f, uint32_t link, char *text, size_t size)
{
    const struct ibshift_port *port = &f->ports[link];
    const char *name = ibshift_node_name(f, port->node);

    if (port->peer == IBSHIFT_NO_PORT) {
        snprintf(text, size, "%s port %u", name, port->number);
    } else {
        const struct ibshift_port *peer = &f->ports[port->peer];

        snprintf(text, size, "%s port %u -> %s port %u", name, port->number,
                 ibshift_node_name(f, peer->node), peer->number);
    }
}
