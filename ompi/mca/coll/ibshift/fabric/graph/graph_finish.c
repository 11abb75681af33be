/* What is derived when the last node, link or LID is in. */
#include "fabric/graph/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void count_kinds(struct ibshift_fabric *f)
{
    f->host_count = f->switch_count = 0;
    for (uint32_t n = 0; n < f->node_count; n++) {
        f->switch_count += f->nodes[n].kind == IBSHIFT_NODE_SWITCH;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        f->host_count += f->nodes[f->ports[p].node].kind == IBSHIFT_NODE_HCA &&
                         f->ports[p].peer != IBSHIFT_NO_PORT;
    }
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
            if (node->kind == IBSHIFT_NODE_HCA && f->ports[p].peer != IBSHIFT_NO_PORT) {
                f->hosts[hosts++] = p;
            }
        }
    }
}

/* owner[lid] = node + 1. */
static int claim_lids(const struct ibshift_fabric *f, uint32_t *owner, uint32_t node, unsigned lid,
                      unsigned lmc, struct ibshift_error *err)
{
    for (unsigned i = lid; lid != 0 && i < lid + (1u << lmc); i++) {
        if (owner[i] != 0) {
            return ibshift_fail(err, -EEXIST, "LID %u belongs to both '%s' and '%s'", i,
                                ibshift_node_name(f, owner[i] - 1), ibshift_node_name(f, node));
        }
        owner[i] = node + 1;
    }
    return 0;
}

static int check_lids(const struct ibshift_fabric *f, struct ibshift_error *err)
{
    uint32_t *owner = calloc(IBSHIFT_LID_MAX + 1, sizeof(*owner));
    int rc = owner == NULL ? ibshift_fail(err, -ENOMEM, "no memory for the LIDs") : 0;

    for (uint32_t n = 0; rc == 0 && n < f->node_count; n++) {
        rc = claim_lids(f, owner, n, f->nodes[n].lid, f->nodes[n].lmc, err);
    }
    for (uint32_t p = 0; rc == 0 && p < f->port_count; p++) {
        rc = claim_lids(f, owner, f->ports[p].node, f->ports[p].lid, f->ports[p].lmc, err);
    }
    free(owner);
    return rc;
}

static void index_lids(struct ibshift_fabric *f)
{
    memset(f->lid_port, 0xff, (IBSHIFT_LID_MAX + 1) * sizeof(*f->lid_port));
    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];

        for (unsigned i = 0; port->lid != 0 && i < 1u << port->lmc; i++) {
            f->lid_port[port->lid + i] = p;
        }
    }
}

int ibshift_fabric_index(struct ibshift_fabric *f, struct ibshift_error *err)
{
    int rc = check_lids(f, err);

    free(f->lid_port);
    f->lid_port = rc == 0 ? malloc((IBSHIFT_LID_MAX + 1) * sizeof(*f->lid_port)) : NULL;
    if (rc == 0 && f->lid_port == NULL) {
        rc = ibshift_fail(err, -ENOMEM, "no memory for the LIDs");
    }
    if (rc == 0) {
        index_lids(f);
    }
    return rc;
}

int ibshift_fabric_finish(struct ibshift_fabric *f, struct ibshift_error *err)
{
    count_kinds(f);
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

static uint32_t highest_lid(const struct ibshift_fabric *f)
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
    uint32_t stride = highest_lid(f) + 1;
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
