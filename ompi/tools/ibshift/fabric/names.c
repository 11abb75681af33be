#include "fabric/names.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_description(const void *a, const void *b, void *fabric)
{
    const struct ibshift_fabric *f = fabric;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = strcmp(ibshift_node_name(f, x), ibshift_node_name(f, y));

    return order != 0 ? order : (x > y) - (x < y);
}

void fabric_names_open(const struct ibshift_fabric *f, struct fabric_names *names)
{
    uint32_t *node;

    *names = (struct fabric_names){.fabric = f};
    names->is_shared = pool_new(&names->pool, f->node_count, sizeof(*names->is_shared));
    node = pool_new(&names->pool, f->host_count, sizeof(*node));
    for (uint32_t h = 0; h < f->host_count; h++) {
        node[h] = f->ports[f->hosts[h]].node;
    }
    qsort_r(node, f->host_count, sizeof(*node), by_description, (void *)(uintptr_t)f);
    for (uint32_t h = 1; h < f->host_count; h++) {
        if (node[h] != node[h - 1] &&
            strcmp(ibshift_node_name(f, node[h]), ibshift_node_name(f, node[h - 1])) == 0) {
            names->is_shared[node[h]] = names->is_shared[node[h - 1]] = true;
        }
    }
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

    if (port->guid != 0 && names->is_shared[port->node]) {
        snprintf(text, size, "0x%016" PRIx64, port->guid);
        return text;
    }
    if (has_other_host(f, f->hosts[host])) {
        snprintf(text, size, "%s/%u", name, port->number);
        return text;
    }
    return name;
}

void fabric_order_write(const struct ibshift_fabric *f, const uint32_t *order, uint32_t count,
                        FILE *out)
{
    char name[FABRIC_NAME_SIZE];
    struct fabric_names names;

    fabric_names_open(f, &names);
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] == IBSHIFT_NO_HOST) {
            fputs("0xFFFF\tDUMMY\n", out);
        } else {
            fprintf(out, "0x%04x\t%s\n", ibshift_host_lid(f, order[i]),
                    fabric_names_get(&names, order[i], name, sizeof(name)));
        }
    }
    pool_free(&names.pool);
}

/* The first word of the adapter's description. Drivers write "MT4129 ConnectX7 ..." there until
 * somebody sets a name. */
static bool name_of(const char *description, char name[FABRIC_NODE_NAME])
{
    size_t length = strcspn(description, " \t");

    if (length == 0 || length >= FABRIC_NODE_NAME ||
        (strncmp(description, "MT", 2) == 0 && isdigit((unsigned char)description[2]))) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)description[i]) && strchr("-_.", description[i]) == NULL) {
            return false;
        }
    }
    memcpy(name, description, length);
    name[length] = '\0';
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct fabric_node *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : (x->host > y->host) - (x->host < y->host);
}

/* All hosts whose adapters have names of nodes, by these. */
static void sort_named(const struct ibshift_fabric *f, struct pool *pool,
                       struct fabric_nodes *nodes)
{
    *nodes = (struct fabric_nodes){.at = pool_new(pool, f->host_count, sizeof(*nodes->at))};
    for (uint32_t h = 0; h < f->host_count; h++) {
        struct fabric_node *node = &nodes->at[nodes->count];

        node->host = h;
        nodes->count += name_of(ibshift_host_name(f, h), node->name);
    }
    qsort(nodes->at, nodes->count, sizeof(*nodes->at), by_name);
}

int fabric_nodes_find(const struct ibshift_fabric *f, struct pool *pool, struct fabric_nodes *nodes,
                      struct ibshift_error *err)
{
    uint32_t kept = 0;

    sort_named(f, pool, nodes);
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (kept == 0 || strcmp(nodes->at[kept - 1].name, nodes->at[i].name) != 0) {
            nodes->at[kept++] = nodes->at[i];
        }
    }
    nodes->count = kept;
    return kept != 0 ? 0
                     : ibshift_fail(err, -ENOENT,
                                    "no adapter has the name of a node: ibnetdiscover shows their "
                                    "descriptions");
}

uint32_t *fabric_nodes_of(const struct ibshift_fabric *f, struct pool *pool)
{
    uint32_t *of = pool_new(pool, f->host_count, sizeof(*of));
    struct fabric_nodes nodes;

    for (uint32_t h = 0; h < f->host_count; h++) {
        bool is_same = h > 0 && f->ports[f->hosts[h]].node == f->ports[f->hosts[h - 1]].node;

        of[h] = is_same ? of[h - 1] : h;
    }
    sort_named(f, pool, &nodes);
    for (uint32_t i = 1; i < nodes.count; i++) {
        if (strcmp(nodes.at[i].name, nodes.at[i - 1].name) == 0) {
            of[nodes.at[i].host] = of[nodes.at[i - 1].host];
        }
    }
    return of;
}

static int is_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct fabric_node *)node)->name);
}

uint32_t fabric_nodes_host(const struct fabric_nodes *nodes, const char *name)
{
    const struct fabric_node *node = bsearch(name, nodes->at, nodes->count, sizeof(*node), is_name);

    return node != NULL ? node->host : IBSHIFT_NO_HOST;
}
