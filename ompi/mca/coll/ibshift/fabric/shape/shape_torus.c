/*
 * Tori, by their ports: where port p of every switch leads one step along the same axis, the steps
 * commute and come back after the size of the axis.
 */
#include "fabric/shape/shape.h"

#include <stdlib.h>
#include <string.h>

static uint32_t step_from(const struct ibshift_fabric *f, uint32_t sw, unsigned port)
{
    uint32_t node = f->switches[sw], next;

    if (port > f->nodes[node].port_count) {
        return IBSHIFT_NO_SWITCH;
    }
    next = ibshift_port_neighbour(f, ibshift_node_port(f, node, port));
    return next == IBSHIFT_NO_NODE || !ibshift_node_is_switch(f, next)
               ? IBSHIFT_NO_SWITCH
               : f->nodes[next].switch_index;
}

/* Steps through port p until back at the start: 0 if a step is missing. */
static unsigned ring_length(const struct ibshift_fabric *f, uint32_t start, unsigned port)
{
    uint32_t at = start;

    for (unsigned steps = 1; steps <= f->switch_count; steps++) {
        at = step_from(f, at, port);
        if (at == IBSHIFT_NO_SWITCH) {
            return 0;
        }
        if (at == start) {
            return steps;
        }
    }
    return 0;
}

/* The axes that start at switch 0: ports whose ring leads to a place that no axis before covers. */
static unsigned find_axes(const struct ibshift_fabric *f, unsigned *port, unsigned *dim)
{
    unsigned dims = 0;

    for (unsigned p = 1; p <= f->nodes[f->switches[0]].port_count; p++) {
        uint32_t next = step_from(f, 0, p);
        unsigned length;
        bool known = next == IBSHIFT_NO_SWITCH;

        for (unsigned k = 0; !known && k < dims; k++) {
            uint32_t at = 0;

            for (unsigned i = 1; i < dim[k] && !known; i++) {
                at = step_from(f, at, port[k]);
                known = at == next;
            }
        }
        length = known ? 0 : ring_length(f, 0, p);
        if (known) {
            continue;
        }
        if (length < 2 || dims == IBSHIFT_DIMS_MAX) {
            return 0;
        }
        port[dims] = p;
        dim[dims++] = length;
    }
    return dims;
}

static bool place_all(const struct ibshift_fabric *f, unsigned dims, const unsigned *port,
                      const unsigned *dim, uint32_t *at, bool *taken)
{
    uint32_t filled = 1;

    at[0] = 0;
    taken[0] = true;
    for (unsigned k = 0; k < dims; k++) {
        uint32_t block = filled;

        for (uint32_t i = block; i < block * dim[k]; i++) {
            uint32_t next =
                i < f->switch_count ? step_from(f, at[i - block], port[k]) : IBSHIFT_NO_SWITCH;

            if (next == IBSHIFT_NO_SWITCH || taken[next]) {
                return false;
            }
            taken[next] = true;
            at[i] = next;
        }
        filled *= dim[k];
    }
    return filled == f->switch_count;
}

/* Every cable between switches joins places that differ by one step in one axis. */
static bool all_are_steps(const struct ibshift_fabric *f, const struct ibshift_shape *t)
{
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t a = f->ports[p].node, b = ibshift_port_neighbour(f, p);
        unsigned steps = 0;

        if (b == IBSHIFT_NO_NODE || !ibshift_node_is_switch(f, a) ||
            !ibshift_node_is_switch(f, b)) {
            continue;
        }
        for (unsigned k = 0; k < t->dims; k++) {
            const uint16_t *x =
                t->digits + (size_t)f->nodes[a].switch_index * (IBSHIFT_LEVELS_MAX + 1);
            const uint16_t *y =
                t->digits + (size_t)f->nodes[b].switch_index * (IBSHIFT_LEVELS_MAX + 1);
            unsigned apart = (unsigned)(x[k] > y[k] ? x[k] - y[k] : y[k] - x[k]);

            steps += apart < t->dim[k] - apart ? apart : t->dim[k] - apart;
        }
        if (steps != 1) {
            return false;
        }
    }
    return true;
}

static void number_places(const struct ibshift_fabric *f, struct ibshift_shape *t,
                          const uint32_t *at)
{
    for (uint32_t i = 0; i < f->switch_count; i++) {
        uint16_t *digits = t->digits + (size_t)at[i] * (IBSHIFT_LEVELS_MAX + 1);
        uint32_t rest = i;

        for (unsigned k = 0; k < t->dims; k++) {
            digits[k] = (uint16_t)(rest % t->dim[k]);
            rest /= t->dim[k];
        }
    }
}

bool ibshift_shape_torus(const struct ibshift_fabric *f, struct ibshift_shape *t)
{
    unsigned port[IBSHIFT_DIMS_MAX], dim[IBSHIFT_DIMS_MAX], dims;
    uint32_t *at;
    bool *taken, found;

    dims = f->switch_count > 2 ? find_axes(f, port, dim) : 0;
    if (dims == 0) {
        return false;
    }
    at = calloc(f->switch_count, sizeof(*at));
    taken = calloc(f->switch_count, sizeof(*taken));
    t->digits = calloc((size_t)f->switch_count * (IBSHIFT_LEVELS_MAX + 1), sizeof(*t->digits));
    found = at != NULL && taken != NULL && t->digits != NULL &&
            place_all(f, dims, port, dim, at, taken);
    if (found) {
        t->dims = dims;
        memcpy(t->dim, dim, sizeof(dim));
        number_places(f, t, at);
        found = all_are_steps(f, t);
    }
    free(at);
    free(taken);
    if (!found) {
        free(t->digits);
        memset(t, 0, sizeof(*t));
        return false;
    }
    t->kind = IBSHIFT_SHAPE_TORUS;
    t->leaves = f->switch_count;
    return true;
}

unsigned ibshift_shape_ring(const struct ibshift_fabric *f)
{
    struct ibshift_shape shape = {.dims = 0};
    unsigned longest = 0;

    if (ibshift_shape_torus(f, &shape)) {
        for (unsigned k = 0; k < shape.dims; k++) {
            longest = shape.dim[k] > longest ? shape.dim[k] : longest;
        }
        free(shape.digits);
    }
    return longest;
}
