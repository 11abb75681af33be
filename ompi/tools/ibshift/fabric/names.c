/* What hosts are called in files that are read again: see fabric_names. */
#include "fabric/names.h"

#include <inttypes.h>
#include <string.h>

/* FNV-1a; two names with one hash only cost one of them its name: it is written by GUID. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3ull;
    }
    return hash != 0 ? hash : 1;
}

int fabric_names_open(const struct ibshift_fabric *f, struct fabric_names *names)
{
    *names = (struct fabric_names){.fabric = f};
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t node = f->ports[f->hosts[h]].node;
        uint64_t hash = hash_of(ibshift_node_name(f, node));
        uint32_t other = ibshift_map64_get(&names->node_of, hash);
        int rc = 0;

        if (other == IBSHIFT_MAP_MISS) {
            rc = ibshift_map64_add(&names->node_of, hash, node);
        } else if (other != node && ibshift_map64_get(&names->shared, hash) == IBSHIFT_MAP_MISS) {
            rc = ibshift_map64_add(&names->shared, hash, node);
        }
        if (rc != 0) {
            fabric_names_close(names);
            return rc;
        }
    }
    return 0;
}

void fabric_names_close(struct fabric_names *names)
{
    ibshift_map64_free(&names->node_of);
    ibshift_map64_free(&names->shared);
}

static bool has_other_host(const struct ibshift_fabric *f, uint32_t port)
{
    const struct ibshift_node *node = &f->nodes[f->ports[port].node];

    for (uint32_t p = node->first_port; p < node->first_port + node->port_count; p++) {
        if (p != port && f->ports[p].peer != IBSHIFT_NO_PORT) {
            return true;
        }
    }
    return false;
}

const char *fabric_names_get(const struct fabric_names *names, uint32_t host, char *text,
                             size_t size)
{
    const struct ibshift_fabric *f = names->fabric;
    const struct ibshift_port *port = &f->ports[f->hosts[host]];
    const char *name = ibshift_host_name(f, host);

    if (port->guid != 0 && ibshift_map64_get(&names->shared, hash_of(name)) != IBSHIFT_MAP_MISS) {
        snprintf(text, size, "0x%016" PRIx64, port->guid);
        return text;
    }
    if (has_other_host(f, f->hosts[host])) {
        snprintf(text, size, "%s/%u", name, port->number);
        return text;
    }
    return name;
}
