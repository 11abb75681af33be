/* The graph that an engine works on: a copy of the source with LIDs, and empty tables. */
#include "route/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int copy_nodes(const struct ibshift_fabric *from, struct ibshift_fabric *to,
                      struct ibshift_error *err)
{
    for (uint32_t n = 0; n < from->node_count; n++) {
        const struct ibshift_node *node = &from->nodes[n];
        int64_t rc = ibshift_fabric_add_node(to, node->kind, node->guid, ibshift_node_name(from, n),
                                             node->port_count, err);

        if (rc < 0) {
            return (int)rc;
        }
        to->nodes[n].lid = node->lid;
        to->nodes[n].lmc = node->lmc;
        for (unsigned i = 0; i < node->port_count; i++) {
            uint32_t port = node->first_port + i;
            uint64_t guid = from->ports[port].guid;

            if (guid != 0 && ibshift_fabric_set_port_guid(to, port, guid) != 0) {
                return ibshift_fail(err, -EINVAL, "port %u of '%s' has another port's GUID", i + 1,
                                    ibshift_node_name(from, n));
            }
            if (from->ports[port].peer != IBSHIFT_NO_PORT) {
                to->ports[port].lid = from->ports[port].lid;
                to->ports[port].lmc = from->ports[port].lmc;
            }
        }
    }
    return 0;
}

int route_copy_graph(const struct ibshift_fabric *from, const bool *is_left_out,
                     struct ibshift_fabric *to, struct ibshift_error *err)
{
    int rc = copy_nodes(from, to, err);

    for (uint32_t p = 0; rc == 0 && p < from->port_count; p++) {
        uint32_t peer = from->ports[p].peer;

        if (peer != IBSHIFT_NO_PORT && peer > p &&
            (is_left_out == NULL ||
             (!is_left_out[from->ports[p].node] && !is_left_out[from->ports[peer].node]))) {
            rc = ibshift_fabric_add_link(to, p, peer, from->ports[p].rate, err);
        }
    }
    return rc == 0 ? ibshift_fabric_finish(to, err) : rc;
}

static bool has_cable(const struct ibshift_fabric *f, const struct ibshift_node *node)
{
    for (unsigned i = 0; i < node->port_count; i++) {
        if (f->ports[node->first_port + i].peer != IBSHIFT_NO_PORT) {
            return true;
        }
    }
    return false;
}

/* Each cabled port of a host, router or aggregation node has a LID of its own. */
static bool wants_lid(const struct ibshift_fabric *f, uint32_t port)
{
    return f->ports[port].peer != IBSHIFT_NO_PORT &&
           !ibshift_node_is_switch(f, f->ports[port].node);
}

/* All that need a LID have one, all hosts with this LMC (-1: with the same). */
static bool has_lids(const struct ibshift_fabric *f, int lmc)
{
    for (uint32_t n = 0; n < f->node_count; n++) {
        if (ibshift_node_is_switch(f, n) && f->nodes[n].lid == 0 && has_cable(f, &f->nodes[n])) {
            return false;
        }
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];

        if (wants_lid(f, p) && port->lid == 0) {
            return false;
        }
        if (wants_lid(f, p) && f->nodes[port->node].kind == IBSHIFT_NODE_HCA) {
            lmc = lmc < 0 ? port->lmc : lmc;
            if (port->lmc != lmc) {
                return false;
            }
        }
    }
    return true;
}

static void forget_lids(struct ibshift_fabric *f)
{
    for (uint32_t n = 0; n < f->node_count; n++) {
        f->nodes[n].lid = f->nodes[n].lmc = 0;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        f->ports[p].lid = f->ports[p].lmc = 0;
    }
}

/* The LIDs of all cabled ports of nodes of one kind, aligned for the LMC; *lid is the next. */
static int number_ports(struct ibshift_fabric *f, enum ibshift_node_kind kind, unsigned lmc,
                        unsigned *lid, struct ibshift_error *err)
{
    unsigned mask = (1u << lmc) - 1;
    int rc = 0;

    for (uint32_t p = 0; rc == 0 && p < f->port_count; p++) {
        uint32_t node = f->ports[p].node;

        if (f->nodes[node].kind == kind && wants_lid(f, p)) {
            *lid = (*lid + mask) & ~mask;
            rc = ibshift_fabric_set_lid(f, node, f->ports[p].number, *lid, lmc, err);
            *lid += mask + 1;
        }
    }
    return rc;
}

/* Hosts first, then switches, then routers and aggregation nodes; OpenSM's LMC is for all but the
 * switches. */
static int number_lids(struct ibshift_fabric *f, unsigned lmc, struct ibshift_error *err)
{
    unsigned lid = 1;
    int rc;

    forget_lids(f);
    rc = number_ports(f, IBSHIFT_NODE_HCA, lmc, &lid, err);
    for (uint32_t n = 0; rc == 0 && n < f->node_count; n++) {
        if (f->nodes[n].kind == IBSHIFT_NODE_SWITCH) {
            rc = ibshift_fabric_set_lid(f, n, 0, lid++, 0, err);
        }
    }
    return rc == 0 ? number_ports(f, IBSHIFT_NODE_OTHER, lmc, &lid, err) : rc;
}

static int set_lids(struct ibshift_fabric *f, int lmc, struct ibshift_error *err)
{
    unsigned first = 1u << (lmc > 0 ? lmc : 0);
    uint64_t ports = 0, needed;

    if (has_lids(f, lmc)) {
        return 0;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        ports += wants_lid(f, p);
    }
    needed = ports * first + f->switch_count;
    needed += ports > f->host_count ? first - 1 : 0; /* aligned again behind the switches */
    if (needed + first - 1 > IBSHIFT_LID_MAX) {
        return ibshift_fail(err, -ENOTSUP,
                            "out of LIDs: %llu hosts of %u LIDs and %u switches want %llu, a "
                            "subnet has %u; take a smaller LMC",
                            (unsigned long long)ports, first, f->switch_count,
                            (unsigned long long)needed, IBSHIFT_LID_MAX - first + 1);
    }
    return number_lids(f, lmc > 0 ? (unsigned)lmc : 0, err);
}

static uint32_t highest_lid(const struct ibshift_fabric *f)
{
    uint32_t top = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        top = f->nodes[n].lid > top ? f->nodes[n].lid : top;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t last = f->ports[p].lid + (1u << f->ports[p].lmc) - 1;

        top = last > top ? last : top;
    }
    return top;
}

static int prepare(const struct ibshift_fabric *source, int lmc, struct ibshift_fabric *f,
                   struct ibshift_error *err)
{
    int rc = route_copy_graph(source, NULL, f, err);

    if (rc == 0 && f->host_count == 0) {
        rc = ibshift_fail(err, -ENOTSUP, "the fabric has no hosts: nothing to route to");
    }
    if (rc == 0) {
        rc = set_lids(f, lmc, err);
    }
    if (rc == 0) {
        rc = ibshift_fabric_index(f, err);
    }
    if (rc == 0) {
        f->lft_stride = highest_lid(f) + 1;
        f->lft = calloc((size_t)f->switch_count + 1, f->lft_stride);
        rc = f->lft != NULL ? 0
                            : ibshift_fail(err, -ENOMEM, "no memory for the tables of %u switches",
                                           f->switch_count);
    }
    return rc;
}

int route_open(const struct ibshift_fabric *source, int lmc, struct route *r,
               struct ibshift_error *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int rc;

    *r = (struct route){.fabric = ibshift_fabric_new(),
                        .threads = cores > 0 ? (unsigned)cores : 1,
                        .vls = 8,
                        .vls_used = 1};
    rc = r->fabric == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                           : prepare(source, lmc, r->fabric, err);
    if (rc != 0) {
        route_close(r);
    }
    return rc;
}

void route_close(struct route *r)
{
    ibshift_fabric_free(r->fabric);
    free(r->order);
    free(r->sl);
    free(r->vl);
    free(r->vl_from);
    memset(r, 0, sizeof(*r));
}

int route_lanes_new(struct route *r, unsigned vls, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    uint64_t size = 0;

    if (vls > r->vls) {
        return ibshift_fail(err, -ENOTSUP, "this needs %u VLs, the fabric has %u (--vls)", vls,
                            r->vls);
    }
    r->vl_from = calloc((size_t)f->switch_count + 1, sizeof(*r->vl_from));
    if (r->vl_from == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u switches", f->switch_count);
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        uint64_t ports = f->nodes[f->switches[s]].port_count + 1u;

        r->vl_from[s] = size;
        size += ports * ports * ROUTE_SLS;
    }
    r->sl = calloc((size_t)f->switch_count + 1, f->lft_stride);
    r->vl = calloc(size + 1, 1);
    r->vls_used = vls;
    return r->sl != NULL && r->vl != NULL
               ? 0
               : ibshift_fail(err, -ENOMEM, "no memory for the SL-to-VL tables of %u switches",
                              f->switch_count);
}
