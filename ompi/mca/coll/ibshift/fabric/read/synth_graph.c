/* Complete fabrics, and the closed forms of their routes. */
#include "fabric/read/synth_spec.h"

#include <errno.h>
#include <stdlib.h>

/* The end at the lower node goes first. */
int synth_join(struct synth *s, uint32_t a, unsigned port_a, uint32_t b, unsigned port_b)
{
    struct synth_cable *c = ibshift_room(&s->cables, s->cable_count, 1, sizeof(*c));
    bool is_up = a < b;

    if (c != NULL) {
        *c = (struct synth_cable){
            .node = {is_up ? a : b, is_up ? b : a},
            .port = {(uint8_t)(is_up ? port_a : port_b), (uint8_t)(is_up ? port_b : port_a)}};
        s->cable_count++;
    }
    return c != NULL ? 0 : -ENOMEM;
}

/*
 * Fat trees by their tuples: PGFT(h; m; w; p) and QFT(h; m; w; p).
 * E. Zahavi et al., "Quasi fat trees for HPC clouds and their fault-resilient closed-form routing";
 * the numbers in comments are its equations. Down ports come first, then up ports.
 */

static unsigned radix(const struct synth_spec *t, unsigned level, unsigned i)
{
    return i <= level ? t->w[i] : t->m[i];
}

static uint64_t level_size(const struct synth_spec *t, unsigned level)
{
    uint64_t size = 1;

    for (unsigned i = 1; i <= t->h; i++) {
        size *= radix(t, level, i);
        if (size > IBSHIFT_NODES_MAX) {
            return IBSHIFT_NODES_MAX + 1; /* too many, whatever comes */
        }
    }
    return size;
}

static void tuple_of(const struct synth_spec *t, unsigned level, uint32_t index,
                     struct synth_tuple *tuple)
{
    tuple->level = level;
    for (unsigned i = 1; i <= t->h; i++) {
        tuple->digit[i] = index % radix(t, level, i);
        index /= radix(t, level, i);
    }
}

static uint32_t index_of(const struct synth_spec *t, const struct synth_tuple *tuple)
{
    uint32_t index = 0;

    for (unsigned i = t->h; i >= 1; i--) {
        index = index * radix(t, tuple->level, i) + tuple->digit[i];
    }
    return index;
}

unsigned synth_level(const struct synth *s, uint32_t node)
{
    unsigned level = 1;

    while (node >= s->level_start[level + 1]) {
        level++;
    }
    return level;
}

static unsigned down_ports(const struct synth_spec *t, unsigned level)
{
    return t->m[level] * t->p[level];
}

static unsigned up_ports(const struct synth_spec *t, unsigned level)
{
    return level == t->h ? 0 : t->w[level + 1] * t->p[level + 1];
}

/* The child at down port f of a switch, and which of the child's up ports that is: (6), (7), (8).
 */
static unsigned child_at(const struct synth_spec *t, const struct synth_tuple *s, unsigned f,
                         struct synth_tuple *child)
{
    unsigned l = s->level, copy = f / t->m[l];
    unsigned crossed = l < t->h ? l + 1 : l - 1; /* the digit that cross-connections change */

    *child = *s;
    child->level = l - 1;
    child->digit[l] = f % t->m[l];
    if (!t->qft || t->p[l] == 1) {
        return s->digit[l] + t->w[l] * copy;
    }
    child->digit[crossed] = s->digit[crossed] / t->p[l] * t->p[l] + copy;
    return s->digit[l] + t->w[l] * (s->digit[crossed] % t->p[l]);
}

static int check_shape(struct synth *s, struct ibshift_error *err)
{
    const struct synth_spec *t = &s->spec;
    uint64_t nodes = 0;

    for (unsigned l = 0; l <= t->h; l++) {
        unsigned crossed = l < t->h ? l + 1 : l - 1;

        s->level_start[l] = (uint32_t)nodes;
        nodes += level_size(t, l);
        if (nodes > IBSHIFT_LID_MAX) {
            return ibshift_fail(err, -E2BIG, "'%s': more than %u hosts and switches", t->text,
                                IBSHIFT_LID_MAX);
        }
        if (l > 0 && down_ports(t, l) + up_ports(t, l) > IBSHIFT_PORT_MAX) {
            return ibshift_fail(err, -E2BIG, "'%s': switches of level %u have more than %d ports",
                                t->text, l, IBSHIFT_PORT_MAX);
        }
        if (l > 0 && t->qft && t->p[l] > 1 && (l == 1 || radix(t, l, crossed) % t->p[l] != 0)) {
            return ibshift_fail(err, -EINVAL, "'%s': %c%u must be a multiple of p%u", t->text,
                                l < t->h ? 'm' : 'w', crossed, l);
        }
    }
    s->level_start[t->h + 1] = s->nodes = (uint32_t)nodes;
    s->hosts = s->level_start[1];
    return 0;
}

static int link_children(struct synth *s, uint32_t node)
{
    const struct synth_spec *t = &s->spec;
    unsigned level = synth_level(s, node);
    struct synth_tuple child = {0};
    int rc = 0;

    for (unsigned f = 0; rc == 0 && f < down_ports(t, level); f++) {
        unsigned g = child_at(t, &s->tuples[node], f, &child);

        rc = synth_join(s, s->level_start[level - 1] + index_of(t, &child),
                        level == 1 ? 1 : down_ports(t, level - 1) + g + 1, node, f + 1);
    }
    return rc;
}

static unsigned p_at(const struct synth_spec *t, unsigned level)
{
    return t->qft && level >= 1 ? t->p[level] : 1;
}

/* Distance between consecutive destinations that pass a switch of a level: (11), (12). */
static uint32_t step_of(const struct synth_spec *t, unsigned level)
{
    uint64_t up = 1, down = 1;

    for (unsigned i = 1; i <= level; i++) {
        up *= t->w[i] * p_at(t, i);
        down *= i >= 3 ? p_at(t, i - 2) : 1;
    }
    return (uint32_t)(up / down > 0 ? up / down : 1);
}

int synth_tree_build(struct synth *s, struct ibshift_error *err)
{
    int rc = check_shape(s, err);

    if (rc != 0) {
        return rc;
    }
    s->tuples = calloc((size_t)s->nodes + 1, sizeof(*s->tuples));
    for (uint32_t i = 0; s->tuples != NULL && i < s->nodes; i++) {
        unsigned level = i < s->hosts ? 0 : synth_level(s, i);

        tuple_of(&s->spec, level, i - s->level_start[level], &s->tuples[i]);
    }
    for (unsigned l = 0; l <= s->spec.h; l++) {
        s->step[l] = step_of(&s->spec, l);
    }
    for (uint32_t i = s->hosts; s->tuples != NULL && rc == 0 && i < s->nodes; i++) {
        rc = link_children(s, i);
    }
    return s->tuples != NULL && rc == 0
               ? 0
               : ibshift_fail(err, -ENOMEM, "no memory for %u nodes", s->nodes);
}

/* Which of the cross-connected parents a destination passed two levels below: (14). */
static unsigned cross_of(const struct synth *s, unsigned level, uint32_t d)
{
    const struct synth_spec *t = &s->spec;

    if (level < 2 || p_at(t, level - 1) == 1) {
        return 0;
    }
    return d / s->step[level - 2] % (t->w[level - 1] * p_at(t, level - 1)) / t->w[level - 1];
}

/* (10), which is (9) where nothing is crossed. */
static bool is_below(const struct synth_spec *t, const struct synth_tuple *s,
                     const struct synth_tuple *host)
{
    unsigned l = s->level, p = p_at(t, l);

    for (unsigned i = l + 2; i <= t->h; i++) {
        if (s->digit[i] != host->digit[i]) {
            return false;
        }
    }
    return l == t->h || s->digit[l + 1] / p == host->digit[l + 1] / p;
}

static unsigned up_port(const struct synth *s, unsigned level, uint32_t d)
{
    const struct synth_spec *t = &s->spec;
    uint32_t g = d / s->step[level] * p_at(t, level - 1) + cross_of(s, level, d); /* (15) */

    return down_ports(t, level) + g % up_ports(t, level) + 1;
}

static unsigned down_port(const struct synth *s, unsigned l, const struct synth_tuple *host,
                          uint32_t d)
{
    const struct synth_spec *t = &s->spec;
    const unsigned *digit = host->digit;

    if (l > 1 && p_at(t, l - 1) > 1) {
        return digit[l] / p_at(t, l - 1) * p_at(t, l - 1) + cross_of(s, l, d) + 1; /* (17) */
    }
    if (!t->qft) {
        return digit[l] + t->m[l] * (d / s->step[l] % t->p[l]) + 1; /* (16) */
    }
    return digit[l] + t->m[l] * (digit[l < t->h ? l + 1 : l - 1] % t->p[l]) + 1; /* (18) */
}

unsigned synth_tree_ports(const struct synth *s, uint32_t sw)
{
    unsigned level = synth_level(s, sw);

    return down_ports(&s->spec, level) + up_ports(&s->spec, level);
}

unsigned synth_tree_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread)
{
    const struct synth_tuple *self = &s->tuples[sw], *host = &s->tuples[d];

    return is_below(&s->spec, self, host) ? down_port(s, self->level, host, spread)
                                          : up_port(s, self->level, spread);
}

/* Tori: switch c0 + c1 * dim0 + ..; ports: hosts first, then +, - of each dimension (one port where
 * the size is 2). */

static unsigned port_plus(const struct synth_spec *t, unsigned k)
{
    unsigned port = t->hosts_per_switch + 1;

    for (unsigned i = 0; i < k; i++) {
        port += t->dim[i] > 2 ? 2 : t->dim[i] - 1;
    }
    return port;
}

unsigned synth_torus_ports(const struct synth *s, uint32_t sw)
{
    return port_plus(&s->spec, s->spec.dims) - 1;
}

static int link_switch(struct synth *s, uint32_t i)
{
    const struct synth_spec *t = &s->spec;
    uint32_t stride = 1;
    int rc = 0;

    for (unsigned h = 0; rc == 0 && h < t->hosts_per_switch; h++) {
        rc = synth_join(s, i * t->hosts_per_switch + h, 1, s->hosts + i, h + 1);
    }
    for (unsigned k = 0; rc == 0 && k < t->dims; k++) {
        unsigned size = t->dim[k], c = i / stride % size, plus = port_plus(t, k);
        uint32_t next = i + ((c + 1) % size - c) * stride;

        if (size > 2 || (size == 2 && c == 0)) {
            rc = synth_join(s, s->hosts + i, plus, s->hosts + next, size > 2 ? plus + 1 : plus);
        }
        stride *= size;
    }
    return rc;
}

int synth_torus_build(struct synth *s, struct ibshift_error *err)
{
    const struct synth_spec *t = &s->spec;
    uint64_t switches = 1;
    int rc = 0;

    for (unsigned k = 0; k < t->dims; k++) {
        switches *= t->dim[k];
        if (switches * (t->hosts_per_switch + 1) > IBSHIFT_LID_MAX) {
            return ibshift_fail(err, -E2BIG, "'%s': more than %u hosts and switches", t->text,
                                IBSHIFT_LID_MAX);
        }
    }
    s->hosts = s->level_start[1] = (uint32_t)switches * t->hosts_per_switch;
    s->nodes = s->level_start[2] = s->hosts + (uint32_t)switches;
    if (port_plus(t, t->dims) - 1 > IBSHIFT_PORT_MAX) {
        return ibshift_fail(err, -E2BIG, "'%s': more than %d ports", t->text, IBSHIFT_PORT_MAX);
    }
    for (uint32_t i = 0; rc == 0 && i < switches; i++) {
        rc = link_switch(s, i);
    }
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory for %u nodes", s->nodes);
}

/* Dimension order, the shorter way round; equally long ways by the destination's parity. */
unsigned synth_torus_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread)
{
    const struct synth_spec *t = &s->spec;
    uint32_t here = sw - s->hosts, there = d / t->hosts_per_switch;

    for (unsigned k = 0; k < t->dims; k++) {
        unsigned size = t->dim[k], to = there % size, ahead = (to + size - here % size) % size;

        if (ahead != 0) {
            bool minus = size > 2 && (2 * ahead > size || (2 * ahead == size && to % 2 == 1));

            return port_plus(t, k) + minus;
        }
        here /= size;
        there /= size;
    }
    return d % t->hosts_per_switch + 1;
}
