#include "route/tree.h"

#include <errno.h>
#include <stdlib.h>

/* Has cables, but no hosts, nothing above, and all below it are joined without it. */
static bool is_useless(const struct route_tree *t, uint32_t s)
{
    const struct ibshift_fabric *f = t->f;
    const struct ibshift_node *node = &f->nodes[f->switches[s]];
    unsigned level = t->shape.node_level[f->switches[s]];
    uint32_t part = IBSHIFT_NO_SWITCH;

    for (unsigned p = 1; p <= node->port_count; p++) {
        uint32_t next = ibshift_port_neighbour(f, node->first_port + p - 1), below;

        if (next == IBSHIFT_NO_NODE) {
            continue;
        }
        if (!ibshift_node_is_switch(f, next) || t->shape.node_level[next] + 1u != level) {
            return false;
        }
        below = t->shape.down[level - 1][f->nodes[next].switch_index];
        if (part != IBSHIFT_NO_SWITCH && below != part) {
            return false;
        }
        part = below;
    }
    return part != IBSHIFT_NO_SWITCH;
}

int route_tree_prune(struct route_tree *t, struct ibshift_error *err)
{
    bool *is_left_out = calloc((size_t)t->f->node_count + 1, sizeof(*is_left_out));
    struct ibshift_fabric *copy = NULL;
    bool found = false;
    int rc = is_left_out == NULL ? -ENOMEM : 0;

    for (uint32_t s = 0; rc == 0 && s < t->f->switch_count; s++) {
        if (t->shape.node_level[t->f->switches[s]] > 1 && is_useless(t, s)) {
            is_left_out[t->f->switches[s]] = found = true;
        }
    }
    if (rc == 0 && found) {
        copy = ibshift_fabric_new();
        rc = copy == NULL ? -ENOMEM : route_copy_graph(t->f, is_left_out, copy, err);
    }
    free(is_left_out);
    if (rc != 0) {
        ibshift_fabric_free(copy);
        return rc == -ENOMEM ? ibshift_fail(err, rc, "no memory for %u nodes", t->f->node_count)
                             : rc;
    }
    if (found) {
        ibshift_fabric_free(t->pruned);
        t->f = t->pruned = copy;
    }
    return found;
}
