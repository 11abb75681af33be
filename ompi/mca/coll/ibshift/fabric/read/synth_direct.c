/*
 * Fabrics without a root: dragonfly, dragonfly+, HyperX and Slim Fly, each with its minimal routes, and
 * with the service levels that keep these free of credit loops.
 *
 * Switches are numbered group by group; ports: hosts first, then cables within the group, then those to
 * other groups.
 */
#include "fabric/read/synth_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many nodes there are: hosts, then switches. */
static int set_size(struct synth *s, uint64_t switches, uint64_t hosts, unsigned most_ports,
                    struct ibshift_error *err)
{
    if (switches + hosts > IBSHIFT_LID_MAX) {
        return ibshift_fail(err, -E2BIG, "'%s': more than %u hosts and switches", s->spec.text,
                            IBSHIFT_LID_MAX);
    }
    if (most_ports > IBSHIFT_PORT_MAX) {
        return ibshift_fail(err, -E2BIG, "'%s': more than %d ports", s->spec.text,
                            IBSHIFT_PORT_MAX);
    }
    s->hosts = s->level_start[1] = (uint32_t)hosts;
    s->nodes = s->level_start[2] = (uint32_t)(hosts + switches);
    return 0;
}

static int no_memory(const struct synth *s, int rc, struct ibshift_error *err)
{
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory for %u nodes", s->nodes);
}

/*
 * Dragonfly: groups of switches that are all cabled to each other, and the groups, too. Dragonfly+:
 * in a group leaves with hosts, all cabled to all spines, which have the cables to other groups. Cable k
 * of a group leads k % (groups - 1) + 1 groups on.
 *
 * J. Kim et al., "Technology-driven, highly-scalable dragonfly topology" (2008); A. Shpiner et al.,
 * "Dragonfly+: low cost topology for scaling datacenters" (2017).
 */

static unsigned group_size(const struct synth_spec *t)
{
    return t->leaves + t->spines;
}

/* Switches of a group that have cables to others. */
static unsigned gates(const struct synth_spec *t)
{
    return t->spines > 0 ? t->spines : t->leaves;
}

/* Cables between two groups. */
static unsigned copies(const struct synth_spec *t)
{
    return t->groups > 1 ? gates(t) * t->globals / (t->groups - 1) : 0;
}

/* Behind the hosts and the cables within the group. */
static unsigned first_global(const struct synth_spec *t)
{
    return (t->spines > 0 ? t->leaves : t->hosts_per_switch + t->leaves - 1) + 1;
}

static bool is_spine(const struct synth_spec *t, unsigned i)
{
    return i >= t->leaves;
}

/* Of switch i of a group, to switch j of it. */
static unsigned local_port(const struct synth_spec *t, unsigned i, unsigned j)
{
    if (is_spine(t, i)) {
        return j + 1;
    }
    return t->hosts_per_switch + (t->spines > 0 ? j - t->leaves : j > i ? j - 1 : j) + 1;
}

static unsigned gate_of(const struct synth_spec *t, unsigned cable)
{
    return cable / t->globals + (t->spines > 0 ? t->leaves : 0);
}

unsigned synth_group_ports(const struct synth *s, uint32_t node)
{
    const struct synth_spec *t = &s->spec;
    unsigned i = (node - s->hosts) % group_size(t);

    return t->spines > 0 && !is_spine(t, i) ? t->hosts_per_switch + t->spines
                                            : first_global(t) - 1 + t->globals;
}

static int link_group(struct synth *s, unsigned group)
{
    const struct synth_spec *t = &s->spec;
    unsigned size = group_size(t), between = t->groups - 1;
    uint32_t first = s->hosts + group * size;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < t->leaves; i++) {
        uint32_t host = (group * t->leaves + i) * t->hosts_per_switch;

        for (unsigned h = 0; rc == 0 && h < t->hosts_per_switch; h++) {
            rc = synth_join(s, host + h, 1, first + i, h + 1);
        }
        for (unsigned j = t->spines > 0 ? t->leaves : i + 1; rc == 0 && j < size; j++) {
            rc = synth_join(s, first + i, local_port(t, i, j), first + j, local_port(t, j, i));
        }
    }
    for (unsigned k = 0; rc == 0 && k < copies(t) * between; k++) {
        unsigned on = k % between + 1, there = (group + on) % t->groups;
        unsigned back = between - on + k / between * between;

        if (there > group) {
            rc = synth_join(s, first + gate_of(t, k), first_global(t) + k % t->globals,
                            s->hosts + there * size + gate_of(t, back),
                            first_global(t) + back % t->globals);
        }
    }
    return rc;
}

int synth_group_build(struct synth *s, struct ibshift_error *err)
{
    const struct synth_spec *t = &s->spec;
    uint64_t switches = (uint64_t)t->groups * group_size(t);
    uint64_t hosts = (uint64_t)t->groups * t->leaves * t->hosts_per_switch;
    unsigned ports = first_global(t) - 1 + t->globals, leaf = t->hosts_per_switch + t->spines;
    int rc = set_size(s, switches, hosts, ports > leaf ? ports : leaf, err);

    if (rc == 0 && t->groups > 1 && copies(t) == 0) {
        return ibshift_fail(err, -EINVAL, "'%s': %u groups, and a group has cables to %u others",
                            t->text, t->groups, gates(t) * t->globals);
    }
    if (rc != 0) {
        return rc;
    }
    for (unsigned g = 0; rc == 0 && g < t->groups; g++) {
        rc = link_group(s, g);
    }
    return no_memory(s, rc, err);
}

/* To the gate of one of the cables to the destination's group, then on in that group. */
unsigned synth_group_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread)
{
    const struct synth_spec *t = &s->spec;
    unsigned here = (sw - s->hosts) / group_size(t), i = (sw - s->hosts) % group_size(t);
    unsigned leaf = d / t->hosts_per_switch, there = leaf / t->leaves, j = leaf % t->leaves;
    unsigned between = t->groups - 1, to = j;

    if (here == there && i == j) {
        return d % t->hosts_per_switch + 1;
    }
    if (here != there) {
        unsigned on = (there + t->groups - here) % t->groups;
        unsigned k = on - 1 + spread % copies(t) * between;

        to = gate_of(t, k);
        if (to == i) {
            return first_global(t) + k % t->globals;
        }
        if (is_spine(t, i)) { /* no host's packet comes here */
            to = spread % t->leaves;
        }
    } else if (t->spines > 0 && !is_spine(t, i)) {
        to = t->leaves + spread % t->spines;
    }
    return local_port(t, i, to);
}

/* To groups with higher numbers and to those with lower ones: on one level packets would wait for each
 * other all around. Within a group of a dragonfly+ routes go up and then down. */
unsigned synth_group_level(const struct synth *s, uint32_t from, uint32_t to)
{
    const struct synth_spec *t = &s->spec;

    return t->spines == 0 && (from - s->hosts) / group_size(t) > (to - s->hosts) / group_size(t);
}

/*
 * HyperX: a grid in which the switches of a line are all cabled to each other; one dimension after the
 * other, so one level is enough. J. Ahn et al., "HyperX: topology, routing, and packaging of efficient
 * large-scale networks" (2009).
 */

static unsigned line_port(const struct synth_spec *t, unsigned dim, unsigned from, unsigned to)
{
    unsigned port = t->hosts_per_switch + 1;

    for (unsigned k = 0; k < dim; k++) {
        port += t->dim[k] - 1;
    }
    return port + to - (to > from);
}

unsigned synth_hyperx_ports(const struct synth *s, uint32_t node)
{
    return line_port(&s->spec, s->spec.dims, 0, 0) - 1;
}

int synth_hyperx_build(struct synth *s, struct ibshift_error *err)
{
    const struct synth_spec *t = &s->spec;
    uint64_t switches = 1, ports = t->hosts_per_switch;
    int rc;

    for (unsigned k = 0; k < t->dims; k++) {
        switches = switches > IBSHIFT_LID_MAX ? switches : switches * t->dim[k];
        ports += t->dim[k] - 1;
    }
    rc = set_size(s, switches, switches * t->hosts_per_switch, (unsigned)ports, err);
    if (rc != 0) {
        return rc;
    }
    for (uint32_t i = 0; rc == 0 && i < switches; i++) {
        uint32_t stride = 1;

        for (unsigned h = 0; rc == 0 && h < t->hosts_per_switch; h++) {
            rc = synth_join(s, i * t->hosts_per_switch + h, 1, s->hosts + i, h + 1);
        }
        for (unsigned k = 0; rc == 0 && k < t->dims; k++) {
            unsigned c = i / stride % t->dim[k];

            for (unsigned to = c + 1; rc == 0 && to < t->dim[k]; to++) {
                rc = synth_join(s, s->hosts + i, line_port(t, k, c, to),
                                s->hosts + i + (to - c) * stride, line_port(t, k, to, c));
            }
            stride *= t->dim[k];
        }
    }
    return no_memory(s, rc, err);
}

unsigned synth_hyperx_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread)
{
    const struct synth_spec *t = &s->spec;
    uint32_t here = sw - s->hosts, there = d / t->hosts_per_switch;

    for (unsigned k = 0; k < t->dims; k++) {
        unsigned c = here % t->dim[k], to = there % t->dim[k];

        if (c != to) {
            return line_port(t, k, c, to);
        }
        here /= t->dim[k];
        there /= t->dim[k];
    }
    return d % t->hosts_per_switch + 1;
}

/*
 * Slim Fly: McKay, Miller and Siran's graphs of diameter 2 for a prime q: switches (0, x, y) and
 * (1, m, c). M. Besta and T. Hoefler, "Slim Fly: a cost effective low-diameter network topology" (2014).
 */

static bool is_prime(unsigned q)
{
    for (unsigned i = 2; i * i <= q; i++) {
        if (q % i == 0) {
            return false;
        }
    }
    return q > 1;
}

/* A number whose powers are all but 0, modulo q. */
static unsigned primitive_root(unsigned q)
{
    for (unsigned root = 2; root < q; root++) {
        unsigned power = root, order = 1;

        for (; power != 1; order++) {
            power = power * root % q;
        }
        if (order == q - 1) {
            return root;
        }
    }
    return 1;
}

/* The differences of numbers that are cabled in the first half of the switches, and in the second. */
static void generators(unsigned q, bool *first, bool *second)
{
    unsigned root = primitive_root(q), power = 1, quarter = (q + 1) / 4;

    /* q = 4w + 1: even powers, and odd ones; q = 4w - 1: each with its negative, and 1 is in both. */
    for (unsigned i = 0; i < q - 1; i++) {
        bool is_even = i % 2 == 0, is_late = q % 4 == 3 && i >= 2 * quarter - 1;

        (is_even != is_late ? first : second)[power] = true;
        power = power * root % q;
    }
    if (q % 4 == 3) {
        second[1] = second[q - 1] = true;
    }
}

static bool are_cabled(unsigned q, const bool *first, const bool *second, uint32_t a, uint32_t b)
{
    unsigned half = q * q, x = a % half / q, y = a % q, m = b % half / q, c = b % q;

    if ((a < half) != (b < half)) { /* y = m x + c */
        return a < half ? y == (m * x + c) % q : c == (x * m + y) % q;
    }
    return x == m && y != c && (a < half ? first : second)[(y + q - c) % q];
}

static int link_slimfly(struct synth *s, uint32_t switches)
{
    const struct synth_spec *t = &s->spec;
    bool first[SYNTH_SLIMFLY_MOST] = {false}, second[SYNTH_SLIMFLY_MOST] = {false};
    uint8_t *used = calloc(switches, sizeof(*used));
    int rc = used == NULL ? -ENOMEM : 0;

    generators(t->q, first, second);
    for (uint32_t a = 0; rc == 0 && a < switches; a++) {
        for (unsigned h = 0; rc == 0 && h < t->hosts_per_switch; h++) {
            rc = synth_join(s, a * t->hosts_per_switch + h, 1, s->hosts + a, h + 1);
        }
        for (uint32_t b = a + 1; rc == 0 && b < switches; b++) {
            if (are_cabled(t->q, first, second, a, b)) {
                unsigned port = t->hosts_per_switch + ++used[a];
                unsigned other = t->hosts_per_switch + ++used[b];

                rc = synth_join(s, s->hosts + a, port, s->hosts + b, other);
                s->next[(size_t)a * switches + b] = (uint8_t)port;
                s->next[(size_t)b * switches + a] = (uint8_t)other;
            }
        }
    }
    free(used);
    return rc;
}

/* Switches that are not cabled go over one that both are cabled to, some over this and some over that
 * where there are several. s->next has the cables, and gets the ways. */
static int find_ways(struct synth *s, uint32_t switches)
{
    uint8_t *cables = malloc((size_t)switches * switches);

    if (cables == NULL) {
        return -ENOMEM;
    }
    memcpy(cables, s->next, (size_t)switches * switches);
    for (uint32_t a = 0; a < switches; a++) {
        for (uint32_t b = 0; b < switches; b++) {
            uint32_t via = (a + b) % switches;

            for (uint32_t i = 0; a != b && s->next[(size_t)a * switches + b] == 0 && i < switches;
                 i++, via = (via + 1) % switches) {
                if (cables[(size_t)a * switches + via] != 0 &&
                    cables[(size_t)via * switches + b] != 0) {
                    s->next[(size_t)a * switches + b] = cables[(size_t)a * switches + via];
                    s->level[(size_t)a * switches + b] = via < a;
                }
            }
        }
    }
    free(cables);
    return 0;
}

static unsigned slimfly_degree(unsigned q)
{
    return q % 4 == 1 ? (3 * q - 1) / 2 : (3 * q + 1) / 2;
}

unsigned synth_slimfly_ports(const struct synth *s, uint32_t node)
{
    return s->spec.hosts_per_switch + slimfly_degree(s->spec.q);
}

int synth_slimfly_build(struct synth *s, struct ibshift_error *err)
{
    struct synth_spec *t = &s->spec;
    uint32_t switches = 2 * t->q * t->q;
    int rc;

    if (t->q < 5 || t->q >= SYNTH_SLIMFLY_MOST || !is_prime(t->q)) {
        return ibshift_fail(err, -EINVAL, "'%s': wants a prime from 5 to %d first", t->text,
                            SYNTH_SLIMFLY_MOST - 1);
    }
    t->hosts_per_switch =
        t->hosts_per_switch > 0 ? t->hosts_per_switch : (slimfly_degree(t->q) + 1) / 2;
    rc = set_size(s, switches, (uint64_t)switches * t->hosts_per_switch, synth_slimfly_ports(s, 0),
                  err);
    if (rc != 0) {
        return rc;
    }
    s->next = calloc((size_t)switches * switches, 1);
    s->level = calloc((size_t)switches * switches, 1);
    rc = s->next == NULL || s->level == NULL ? -ENOMEM : link_slimfly(s, switches);
    rc = rc == 0 ? find_ways(s, switches) : rc;
    return no_memory(s, rc, err);
}

unsigned synth_slimfly_port(const struct synth *s, uint32_t sw, uint32_t d, uint32_t spread)
{
    const struct synth_spec *t = &s->spec;
    uint32_t here = sw - s->hosts, there = d / t->hosts_per_switch;

    return here == there ? d % t->hosts_per_switch + 1
                         : s->next[(size_t)here * (s->nodes - s->hosts) + there];
}

/* Routes of two cables whose first leads to a higher number, and the others: on each of the two levels a
 * cable down, or up, is followed by none of the other kind. */
unsigned synth_slimfly_level(const struct synth *s, uint32_t from, uint32_t to)
{
    return s->level[(size_t)(from - s->hosts) * (s->nodes - s->hosts) + (to - s->hosts)];
}

/* The levels of all pairs, as a fabric has them that was read from path records. */
int synth_levels(struct synth *s, struct ibshift_error *err)
{
    struct ibshift_fabric *f = s->fabric;
    size_t stride = f->lft_stride;

    f->sl = calloc((size_t)f->switch_count * stride + 1, sizeof(*f->sl));
    f->sl_row = calloc((size_t)f->host_count + 1, sizeof(*f->sl_row));
    if (f->sl == NULL || f->sl_row == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the service levels");
    }
    f->sl_rows = f->switch_count;
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t leaf = ibshift_port_neighbour(f, f->hosts[h]);
        unsigned lid = ibshift_host_lid(f, h), lids = ibshift_host_lid_count(f, h);

        f->sl_row[h] = f->nodes[leaf].switch_index;
        for (uint32_t i = 0; i < f->switch_count; i++) {
            unsigned level = s->spec.shape->level(s, s->place[f->switches[i]], s->place[leaf]);

            memset(&f->sl[i * stride + lid], (int)level, lids);
        }
    }
    return 0;
}
