#include "fabric/read/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ibshift_draft_node *ibshift_draft_node(struct ibshift_draft *d, uint64_t key,
                                              enum ibshift_node_kind kind, const char *name,
                                              size_t length, uint64_t port)
{
    uint32_t known = ibshift_map64_get(&d->by_key, key);
    struct ibshift_draft_node *n;

    if (known != IBSHIFT_MAP_MISS) {
        n = &d->nodes[known];
        n->kind = n->kind == IBSHIFT_NODE_HCA ? kind : n->kind;
        n->ports = n->ports >= port ? n->ports : (unsigned)port;
        return n;
    }
    n = ibshift_room(&d->nodes, d->node_count, 1, sizeof(*n));
    if (n == NULL || ibshift_map64_add(&d->by_key, key, d->node_count) != 0) {
        ibshift_lines_fail(d->lines, -ENOMEM, "no memory for more nodes");
        return NULL;
    }
    *n = (struct ibshift_draft_node){.guid = key,
                                     .name = strndup(name, length),
                                     .ports = (unsigned)port,
                                     .line = d->lines->number,
                                     .kind = kind};
    d->node_count++;
    if (n->name == NULL) {
        ibshift_lines_fail(d->lines, -ENOMEM, "no memory for more names");
        return NULL;
    }
    if (kind == IBSHIFT_NODE_HCA && ibshift_is_aggregation_node(n->name)) {
        n->kind = IBSHIFT_NODE_OTHER;
    }
    return n;
}

int ibshift_draft_join(struct ibshift_draft *d, const struct ibshift_draft_end *near,
                       const struct ibshift_draft_end *far, struct ibshift_rate rate)
{
    struct ibshift_draft_cable *c = ibshift_room(&d->cables, d->cable_count, 1, sizeof(*c));

    if (c == NULL) {
        return ibshift_lines_fail(d->lines, -ENOMEM, "no memory for more cables");
    }
    *c = (struct ibshift_draft_cable){{*near, *far}, rate, d->lines->number};
    d->cable_count++;
    return 0;
}

int ibshift_draft_add_row(struct ibshift_draft *d, const struct ibshift_draft_row *row)
{
    struct ibshift_draft_node *n =
        ibshift_draft_node(d, row->guid, row->kind, row->name, row->length, row->port);

    if (n != NULL && row->lid != 0) {
        n->lid = (unsigned)row->lid;
    }
    return n != NULL ? 0 : -ENOMEM;
}

int ibshift_draft_join_rows(struct ibshift_draft *d, const struct ibshift_draft_row *near,
                            const struct ibshift_draft_row *far, struct ibshift_rate rate)
{
    struct ibshift_draft_end from = {near->guid, near->guid, near->port, near->lid, 0};
    struct ibshift_draft_end to = {far->guid, far->guid, far->port, far->lid, 0};
    int rc = ibshift_draft_add_row(d, near);

    rc = rc == 0 ? ibshift_draft_add_row(d, far) : rc;
    return rc == 0 ? ibshift_draft_join(d, &from, &to, rate) : rc;
}

/* The fabric numbers them as the draft does. */
static int add_node(struct ibshift_draft *d, uint32_t i)
{
    const struct ibshift_draft_node *n = &d->nodes[i];
    struct ibshift_error *err = d->lines->err;
    int64_t rc = ibshift_fabric_add_node(d->fabric, n->kind, n->guid, n->name, n->ports, err);

    if (rc >= 0 && n->kind == IBSHIFT_NODE_SWITCH && n->lid != 0) {
        rc = ibshift_fabric_set_lid(d->fabric, i, 0, n->lid, n->lmc, err);
    }
    d->lines->number = n->line;
    return ibshift_lines_where(d->lines, (int)(rc < 0 ? rc : 0));
}

/* The end's port in the fabric, which learns its GUID and LID; negative: err, which says no line. */
static int64_t add_end(const struct ibshift_draft *d, const struct ibshift_draft_end *end)
{
    uint32_t node = ibshift_map64_get(&d->by_key, end->key), port;
    struct ibshift_error *err = d->lines->err;
    const struct ibshift_draft_node *n;
    int rc = 0;

    if (node == IBSHIFT_MAP_MISS) {
        return ibshift_fail(err, -ENOENT,
                            "the node at the other end is not in the file (truncated?)");
    }
    n = &d->nodes[node];
    if (end->port > n->ports) {
        return ibshift_fail(err, -ERANGE, "'%s' has no port %" PRIu64, n->name, end->port);
    }
    port = ibshift_node_port(d->fabric, node, (unsigned)end->port);
    if (n->kind != IBSHIFT_NODE_SWITCH) {
        rc = end->guid == 0 ? 0 : ibshift_fabric_set_port_guid(d->fabric, port, end->guid);
        if (rc != 0) {
            return ibshift_fail(err, rc, "port GUID 0x%" PRIx64 " appears twice", end->guid);
        }
        rc = end->lid == 0 ? 0
                           : ibshift_fabric_set_lid(d->fabric, node, (unsigned)end->port,
                                                    (unsigned)end->lid, end->lmc, err);
    }
    return rc != 0 ? rc : (int64_t)port;
}

static int add_cable(struct ibshift_draft *d, const struct ibshift_draft_cable *c)
{
    int64_t from = add_end(d, &c->end[0]), to = from < 0 ? from : add_end(d, &c->end[1]);
    int rc = to < 0 ? (int)to
                    : ibshift_fabric_add_link(
                          d->fabric, (uint32_t)from, (uint32_t)to,
                          c->rate.mbps != 0 ? c->rate : d->fabric->ports[from].rate, d->lines->err);

    d->lines->number = c->line;
    return ibshift_lines_where(d->lines, rc);
}

int ibshift_draft_finish(struct ibshift_draft *d, int rc, const char *what)
{
    if (rc == 0 && d->node_count == 0) {
        rc = ibshift_lines_fail(d->lines, -ENODATA, "no %s in the file", what);
    }
    for (uint32_t i = 0; rc == 0 && i < d->node_count; i++) {
        rc = add_node(d, i);
    }
    for (uint32_t i = 0; rc == 0 && i < d->cable_count; i++) {
        rc = add_cable(d, &d->cables[i]);
    }
    for (uint32_t i = 0; i < d->node_count; i++) {
        free(d->nodes[i].name);
    }
    free(d->nodes);
    free(d->cables);
    ibshift_map64_free(&d->by_key);
    return rc;
}

int ibshift_draft_read(struct ibshift_draft *d, int (*take)(void *context), void *context,
                       const char *what)
{
    return ibshift_draft_finish(d, ibshift_lines_each(d->lines, take, context), what);
}
