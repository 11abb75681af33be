/* What makes a compiled file safe to use, whoever wrote it; and whether it is still true. */
#include "fabric/read/compiled.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static bool are_nodes_sound(const struct ibshift_fabric *f)
{
    uint64_t port = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        const struct ibshift_node *node = &f->nodes[n];
        bool is_switch = node->kind == IBSHIFT_NODE_SWITCH;

        if (node->first_port != port || node->kind > IBSHIFT_NODE_OTHER ||
            node->name >= f->names_size || node->port_count > IBSHIFT_PORT_MAX ||
            node->lmc > IBSHIFT_LMC_MAX || node->lid + (1u << node->lmc) > IBSHIFT_LID_MAX + 1 ||
            is_switch != (node->switch_index != IBSHIFT_NO_SWITCH) ||
            (is_switch &&
             (node->switch_index >= f->switch_count || f->switches[node->switch_index] != n))) {
            return false;
        }
        port += node->port_count;
    }
    return port == f->port_count;
}

static bool are_ports_sound(const struct ibshift_fabric *f)
{
    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];

        if (port->node >= f->node_count || port->number == 0 ||
            f->nodes[port->node].first_port + port->number - 1 != p ||
            port->lmc > IBSHIFT_LMC_MAX || port->lid + (1u << port->lmc) > IBSHIFT_LID_MAX + 1 ||
            (port->peer != IBSHIFT_NO_PORT &&
             (port->peer >= f->port_count || port->peer == p || f->ports[port->peer].peer != p))) {
            return false;
        }
    }
    return true;
}

static bool are_lists_sound(const struct ibshift_fabric *f)
{
    for (uint32_t h = 0; h < f->host_count; h++) {
        if (f->hosts[h] >= f->port_count || (h > 0 && f->hosts[h] <= f->hosts[h - 1]) ||
            f->ports[f->hosts[h]].peer == IBSHIFT_NO_PORT ||
            f->nodes[f->ports[f->hosts[h]].node].kind != IBSHIFT_NODE_HCA) {
            return false;
        }
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (f->switches[s] >= f->node_count || f->nodes[f->switches[s]].switch_index != s) {
            return false;
        }
    }
    for (uint32_t i = 0; i < f->order_count; i++) {
        if (f->order[i] != IBSHIFT_NO_HOST && f->order[i] >= f->host_count) {
            return false;
        }
    }
    return true;
}

static bool are_tables_sound(const struct ibshift_fabric *f)
{
    for (uint32_t s = 0; f->lft != NULL && s < f->switch_count; s++) {
        const uint8_t *row = f->lft + (size_t)s * f->lft_stride;
        uint8_t highest = 0;

        for (uint32_t lid = 0; lid < f->lft_stride; lid++) {
            highest = row[lid] > highest ? row[lid] : highest;
        }
        if (highest > f->nodes[f->switches[s]].port_count) {
            return false;
        }
    }
    return true;
}

bool ibshift_compiled_is_sound(const struct ibshift_fabric *f, uint32_t tables)
{
    return (tables == 0 || tables == f->switch_count) &&
           (f->names_size == 0 || f->names[f->names_size - 1] == '\0') && are_nodes_sound(f) &&
           are_ports_sound(f) && are_lists_sound(f) && are_tables_sound(f);
}

static int compare_port(const struct ibshift_fabric *old, const struct ibshift_fabric *now,
                        uint32_t p, uint32_t node, struct ibshift_error *err)
{
    const struct ibshift_port *before = &old->ports[p];
    uint32_t q = ibshift_node_port(now, node, before->number);
    uint32_t a = ibshift_port_neighbour(old, p), b = ibshift_port_neighbour(now, q);
    const char *name = ibshift_node_name(old, before->node);

    if ((a == IBSHIFT_NO_NODE) != (b == IBSHIFT_NO_NODE) ||
        (a != IBSHIFT_NO_NODE &&
         (old->nodes[a].guid != now->nodes[b].guid ||
          old->ports[before->peer].number != now->ports[now->ports[q].peer].number))) {
        return ibshift_fail(err, -ESTALE, "port %u of '%s': the cable went to '%s', now %s%s%s",
                            before->number, name,
                            a == IBSHIFT_NO_NODE ? "nowhere" : ibshift_node_name(old, a),
                            b == IBSHIFT_NO_NODE ? "" : "to '",
                            b == IBSHIFT_NO_NODE ? "there is none" : ibshift_node_name(now, b),
                            b == IBSHIFT_NO_NODE ? "" : "'");
    }
    if (before->lid != now->ports[q].lid || before->lmc != now->ports[q].lmc) {
        return ibshift_fail(err, -ESTALE, "'%s' port %u had LID %u, now %u", name, before->number,
                            before->lid, now->ports[q].lid);
    }
    return 0;
}

static int compare_row(const struct ibshift_fabric *old, const struct ibshift_fabric *now,
                       uint32_t n, uint32_t node, struct ibshift_error *err)
{
    uint32_t s = old->nodes[n].switch_index, t = now->nodes[node].switch_index;
    uint32_t lids = old->lft_stride < now->lft_stride ? old->lft_stride : now->lft_stride;

    for (uint32_t lid = 1; lid < lids; lid++) {
        if (ibshift_lft_get(old, s, lid) != ibshift_lft_get(now, t, lid)) {
            return ibshift_fail(err, -ESTALE, "switch '%s' sent LID %u out of port %u, now %u",
                                ibshift_node_name(old, n), lid, ibshift_lft_get(old, s, lid),
                                ibshift_lft_get(now, t, lid));
        }
    }
    return 0;
}

static int compare_node(const struct ibshift_fabric *old, const struct ibshift_fabric *now,
                        uint32_t n, struct ibshift_error *err)
{
    const struct ibshift_node *before = &old->nodes[n];
    uint32_t node = ibshift_fabric_find_guid(now, before->guid);
    int rc = 0;

    if (node == IBSHIFT_NO_NODE || now->nodes[node].port_count != before->port_count ||
        now->nodes[node].kind != before->kind) {
        return ibshift_fail(err, -ESTALE, "'%s' (GUID 0x%016" PRIx64 ") is gone or another",
                            ibshift_node_name(old, n), before->guid);
    }
    for (unsigned i = 0; rc == 0 && i < before->port_count; i++) {
        rc = compare_port(old, now, before->first_port + i, node, err);
    }
    return rc == 0 && before->kind == IBSHIFT_NODE_SWITCH && old->lft != NULL && now->lft != NULL
               ? compare_row(old, now, n, node, err)
               : rc;
}

int ibshift_fabric_compare(const struct ibshift_fabric *old, const struct ibshift_fabric *now,
                           struct ibshift_error *err)
{
    int rc = 0;

    if (old->guid_sum == now->guid_sum &&
        (old->lft == NULL || now->lft == NULL || old->tables_sum == now->tables_sum)) {
        return 0;
    }
    for (uint32_t n = 0; rc == 0 && n < old->node_count; n++) {
        rc = compare_node(old, now, n, err);
    }
    return rc != 0
               ? rc
               : ibshift_fail(err, -ESTALE, "%u nodes, now %u", old->node_count, now->node_count);
}
