#include "fabric/nodes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int fabric_nodes_open(const struct ibshift_fabric *f, struct fabric_nodes *nodes,
                      struct ibshift_error *err)
{
    uint32_t kept = 0;

    *nodes = (struct fabric_nodes){.at = calloc((size_t)f->host_count + 1, sizeof(*nodes->at))};
    if (nodes->at == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the names of %u hosts", f->host_count);
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        struct fabric_node *node = &nodes->at[nodes->count];

        node->host = h;
        if (name_of(ibshift_host_name(f, h), node->name)) {
            nodes->count++;
        } else {
            nodes->unnamed++;
        }
    }
    qsort(nodes->at, nodes->count, sizeof(*nodes->at), by_name);
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (kept == 0 || strcmp(nodes->at[kept - 1].name, nodes->at[i].name) != 0) {
            nodes->at[kept++] = nodes->at[i];
        }
    }
    nodes->count = kept;
    if (kept == 0) {
        fabric_nodes_close(nodes);
        return ibshift_fail(err, -ENOENT,
                            "no adapter has the name of a node: ibnetdiscover shows their "
                            "descriptions");
    }
    return 0;
}

void fabric_nodes_close(struct fabric_nodes *nodes)
{
    free(nodes->at);
    nodes->at = NULL;
    nodes->count = 0;
}

static int is_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct fabric_node *)node)->name);
}

uint32_t fabric_nodes_find(const struct fabric_nodes *nodes, const char *name)
{
    const struct fabric_node *node =
        bsearch(name, nodes->at, nodes->count, sizeof(*nodes->at), is_name);

    return node != NULL ? node->host : IBSHIFT_NO_HOST;
}
