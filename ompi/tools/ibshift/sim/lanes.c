#include "sim/lanes.h"

#include <errno.h>
#include <stdlib.h>

static const uint16_t *place_of(const struct ibshift_shape *shape, uint32_t sw)
{
    return &shape->digits[(size_t)sw * (IBSHIFT_LEVELS_MAX + 1)];
}

/* Of the cable from one switch to the other, for a destination at a third. */
static uint8_t lane_of(const struct ibshift_shape *shape, uint32_t from, uint32_t to, uint32_t last)
{
    const uint16_t *own = place_of(shape, from), *next = place_of(shape, to);

    for (unsigned d = 0; d < shape->dims; d++) {
        if (own[d] != next[d]) {
            return place_of(shape, last)[d] > own[d];
        }
    }
    return 0;
}

static uint32_t switch_behind(const struct ibshift_fabric *f, uint32_t port)
{
    uint32_t node = ibshift_port_neighbour(f, port);

    return node == IBSHIFT_NO_NODE ? IBSHIFT_NO_SWITCH : f->nodes[node].switch_index;
}

static void fill_column(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                        unsigned lid, uint32_t last, uint8_t *table)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned port = ibshift_lft_get(f, s, lid);
        uint32_t next = IBSHIFT_NO_SWITCH;

        if (port != 0) {
            next = switch_behind(f, ibshift_node_port(f, f->switches[s], port));
        }
        if (next != IBSHIFT_NO_SWITCH) {
            table[(size_t)s * f->lft_stride + lid] = lane_of(shape, s, next, last);
        }
    }
}

int sim_lanes_torus(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                    uint8_t **table)
{
    if (shape->kind != IBSHIFT_SHAPE_TORUS) {
        return -EINVAL;
    }
    *table = calloc(f->switch_count, f->lft_stride);
    if (*table == NULL) {
        return -ENOMEM;
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t last = switch_behind(f, f->hosts[h]);

        for (unsigned i = 0; i < ibshift_host_lid_count(f, h) && last != IBSHIFT_NO_SWITCH; i++) {
            fill_column(f, shape, ibshift_host_lid(f, h) + i, last, *table);
        }
    }
    return 0;
}
