/* Tori: switch c0 + c1 * dim0 + ..; ports: hosts first, then +, - of each dimension (one port where
 * the size is 2). */
#include "fabric/graph/rate.h"
#include "fabric/read/synth_spec.h"

#include <errno.h>
#include <stdio.h>

static unsigned port_plus(const struct synth_spec *t, unsigned k)
{
    unsigned port = t->hosts_per_switch + 1;

    for (unsigned i = 0; i < k; i++) {
        port += t->dim[i] > 2 ? 2 : t->dim[i] - 1;
    }
    return port;
}

static int count_nodes(struct synth *s, uint32_t *switches, struct ibshift_error *err)
{
    const struct synth_spec *t = &s->spec;
    uint64_t count = 1;

    for (unsigned k = 0; k < t->dims; k++) {
        count *= t->dim[k];
        if (count * (t->hosts_per_switch + 1) > IBSHIFT_LID_MAX) {
            return ibshift_fail(err, -E2BIG, "'%s': more than %u hosts and switches", t->text,
                                IBSHIFT_LID_MAX);
        }
    }
    *switches = (uint32_t)count;
    s->hosts = (uint32_t)count * t->hosts_per_switch;
    s->level_start[1] = s->hosts;
    s->level_start[2] = s->hosts + (uint32_t)count;
    return 0;
}

static int add_switches(struct synth *s, uint32_t switches, struct ibshift_error *err)
{
    unsigned ports = port_plus(&s->spec, s->spec.dims) - 1;
    char name[32];

    for (uint32_t i = 0; i < switches; i++) {
        int64_t rc;

        snprintf(name, sizeof(name), "s1-%05u", i);
        rc = ibshift_fabric_add_node(s->fabric, IBSHIFT_NODE_SWITCH,
                                     0x0002c90200000000ull + 16ull * (s->hosts + i + 1), name,
                                     ports, err);
        if (rc < 0) {
            return (int)rc;
        }
    }
    return 0;
}

static int link_switch(struct synth *s, uint32_t i, struct ibshift_error *err)
{
    const struct synth_spec *t = &s->spec;
    struct ibshift_fabric *f = s->fabric;
    uint32_t stride = 1;
    int rc = 0;

    for (unsigned h = 0; rc == 0 && h < t->hosts_per_switch; h++) {
        rc = ibshift_fabric_add_link(f, ibshift_node_port(f, s->hosts + i, h + 1),
                                     ibshift_node_port(f, i * t->hosts_per_switch + h, 1),
                                     ibshift_rate_usual(), err);
    }
    for (unsigned k = 0; rc == 0 && k < t->dims; k++) {
        unsigned size = t->dim[k], c = i / stride % size, plus = port_plus(t, k);
        uint32_t next = i + ((c + 1) % size - c) * stride;

        if (size > 2 || (size == 2 && c == 0)) {
            rc = ibshift_fabric_add_link(
                f, ibshift_node_port(f, s->hosts + i, plus),
                ibshift_node_port(f, s->hosts + next, size > 2 ? plus + 1 : plus),
                ibshift_rate_usual(), err);
        }
        stride *= size;
    }
    return rc;
}

int synth_torus_build(struct synth *s, struct ibshift_error *err)
{
    uint32_t switches = 0;
    int rc = count_nodes(s, &switches, err);

    if (rc == 0 && port_plus(&s->spec, s->spec.dims) - 1 > IBSHIFT_PORT_MAX) {
        rc = ibshift_fail(err, -E2BIG, "'%s': more than %d ports", s->spec.text, IBSHIFT_PORT_MAX);
    }
    for (uint32_t h = 0; rc == 0 && h < s->hosts; h++) {
        rc = (int)(synth_add_host(s, h, err) < 0 ? -ENOMEM : 0);
    }
    if (rc == 0) {
        rc = add_switches(s, switches, err);
    }
    for (uint32_t i = 0; rc == 0 && i < switches; i++) {
        rc = link_switch(s, i, err);
    }
    return rc;
}

/* Dimension order, the shorter way round; equally long ways by the destination's parity. */
unsigned synth_torus_port(const struct synth *s, uint32_t sw, uint32_t d)
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
