/* Port groups of a graph with levels: what is usual at each level, and who differs. */
#include "fabric/shape/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of one switch, in one direction. */
struct groups {
    unsigned count, ports; /* groups; ports of the first */
    uint32_t odd; /* neighbour whose group has another number of ports, or IBSHIFT_NO_NODE */
    unsigned odd_ports;
};

static struct groups groups_of(const struct ibshift_fabric *f, const struct ibshift_shape *t,
                               uint32_t node, int step)
{
    uint32_t seen[IBSHIFT_PORT_MAX];
    unsigned ports[IBSHIFT_PORT_MAX];
    struct groups g = {.odd = IBSHIFT_NO_NODE};

    ports[0] = 0; /* where there are none */
    for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
        uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));
        unsigned i = 0;

        if (next == IBSHIFT_NO_NODE || t->node_level[next] != t->node_level[node] + step ||
            t->node_level[next] == 0) {
            continue;
        }
        while (i < g.count && seen[i] != next) {
            i++;
        }
        if (i == g.count) {
            seen[g.count] = next;
            ports[g.count++] = 0;
        }
        ports[i]++;
    }
    g.ports = ports[0];
    for (unsigned i = 1; i < g.count; i++) {
        if (ports[i] != g.ports) {
            bool fewer = ports[i] < g.ports;

            g.odd = fewer ? seen[i] : seen[0];
            g.odd_ports = fewer ? ports[i] : g.ports;
            g.ports = fewer ? g.ports : ports[i];
        }
    }
    return g;
}

struct votes {
    uint32_t count[2][IBSHIFT_PORT_MAX + 1], ports[2][IBSHIFT_PORT_MAX + 1];
};

static unsigned winner(const uint32_t *votes)
{
    unsigned best = 0;

    for (unsigned i = 1; i <= IBSHIFT_PORT_MAX; i++) {
        best = votes[i] > votes[best] ? i : best;
    }
    return best;
}

static void find_usual(const struct ibshift_fabric *f, struct ibshift_shape *t, unsigned l,
                       struct votes *votes)
{
    struct ibshift_level *level = &t->level[l];

    memset(votes, 0, sizeof(*votes));
    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (t->node_level[f->switches[s]] == l) {
            struct groups down = groups_of(f, t, f->switches[s], -1);
            struct groups up = groups_of(f, t, f->switches[s], 1);

            votes->count[0][down.count]++;
            votes->ports[0][down.ports]++;
            votes->count[1][up.count]++;
            votes->ports[1][up.ports]++;
            level->switches++;
        }
    }
    level->groups_down = winner(votes->count[0]);
    level->ports_down = winner(votes->ports[0]);
    level->groups_up = winner(votes->count[1]);
    level->ports_up = winner(votes->ports[1]);
}

/* A switch of the same cell (components below and above) that node ought to be joined with. */
static uint32_t missing_neighbour(const struct ibshift_fabric *f, const struct ibshift_shape *t,
                                  uint32_t node, int step)
{
    unsigned l = t->node_level[node], low = step < 0 ? l - 1 : l;
    uint32_t self = f->nodes[node].switch_index;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        uint32_t other = f->switches[s];
        bool joined = false;

        if (t->node_level[other] != l + step || t->down[low + 1][s] != t->down[low + 1][self] ||
            t->up[low][s] != t->up[low][self]) {
            continue;
        }
        for (unsigned p = 1; !joined && p <= f->nodes[node].port_count; p++) {
            joined = ibshift_port_neighbour(f, ibshift_node_port(f, node, p)) == other;
        }
        if (!joined) {
            return other;
        }
    }
    return IBSHIFT_NO_NODE;
}

static void compare(const struct ibshift_fabric *f, struct ibshift_shape *t, uint32_t node,
                    int step, unsigned usual_count, unsigned usual_ports)
{
    const char *way = step > 0 ? "up" : "down", *name = ibshift_node_name(f, node);
    struct groups g = groups_of(f, t, node, step);
    unsigned l = t->node_level[node];

    if (g.count != usual_count) {
        uint32_t other = t->findings.count < IBSHIFT_WARNINGS && g.count < usual_count
                             ? missing_neighbour(f, t, node, step)
                             : IBSHIFT_NO_NODE;

        ibshift_warn(&t->findings,
                     "switch '%s' of level %u has %u port groups going %s, not %u%s%s%s", name, l,
                     g.count, way, usual_count, other != IBSHIFT_NO_NODE ? ": no cable to '" : "",
                     other != IBSHIFT_NO_NODE ? ibshift_node_name(f, other) : "",
                     other != IBSHIFT_NO_NODE ? "'" : "");
    } else if (g.odd != IBSHIFT_NO_NODE) {
        ibshift_warn(&t->findings, "switch '%s' of level %u has %u cables to '%s', %u to others",
                     name, l, g.odd_ports, ibshift_node_name(f, g.odd), g.ports);
    } else if (g.count != 0 && g.ports != usual_ports) {
        ibshift_warn(&t->findings, "switch '%s' of level %u has port groups of %u going %s, not %u",
                     name, l, g.ports, way, usual_ports);
    }
}

/* Both ends of a lost cable differ; the upper one tells, unless only the lower end can. */
static void compare_all(const struct ibshift_fabric *f, struct ibshift_shape *t)
{
    for (unsigned l = t->levels; l >= 1; l--) {
        const struct ibshift_level *level = &t->level[l];

        for (uint32_t s = 0; s < f->switch_count; s++) {
            uint32_t node = f->switches[s];

            if (t->node_level[node] == l) {
                if (l > 1) {
                    compare(f, t, node, -1, level->groups_down, level->ports_down);
                }
                if (l < t->levels) {
                    compare(f, t, node, 1, level->groups_up, level->ports_up);
                }
            }
        }
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* How many switches of a level usually share a tuple: 1, or p in the cross-connected level of a
 * QFT. */
static unsigned sharing(const struct ibshift_fabric *f, const struct ibshift_shape *t, unsigned l,
                        uint64_t *keys)
{
    uint32_t count = 0, votes[IBSHIFT_PORT_MAX + 1] = {0};

    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (t->node_level[f->switches[s]] == l) {
            keys[count++] = (uint64_t)t->down[l][s] << 32 | t->up[l][s];
        }
    }
    qsort(keys, count, sizeof(*keys), by_value);
    for (uint32_t i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && keys[i + run] == keys[i]; run++) {
        }
        votes[run < IBSHIFT_PORT_MAX ? run : IBSHIFT_PORT_MAX]++;
    }
    return winner(votes);
}

static void name_parameters(struct ibshift_shape *t, const unsigned *shared)
{
    t->m[1] = t->hosts_per_leaf;
    t->w[1] = t->p[1] = 1;
    for (unsigned l = 2; l <= t->levels; l++) {
        unsigned c = shared[l] > 1 && t->level[l].groups_down % shared[l] == 0 &&
                             t->level[l - 1].groups_up % shared[l] == 0
                         ? shared[l]
                         : 1;

        t->m[l] = t->level[l].groups_down / c;
        t->w[l] = t->level[l - 1].groups_up / c;
        t->p[l] = c > 1 ? c : t->level[l].ports_down;
        t->kind = c > 1 ? IBSHIFT_SHAPE_QFT : t->kind;
    }
}

static void count_hosts(const struct ibshift_fabric *f, struct ibshift_shape *t)
{
    uint32_t on_leaves = 0;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (t->node_level[f->switches[s]] == 1) {
            unsigned hosts = ibshift_node_hosts(f, f->switches[s]);

            t->hosts_per_leaf = hosts > t->hosts_per_leaf ? hosts : t->hosts_per_leaf;
            on_leaves += hosts;
            t->leaves++;
        }
    }
    t->missing_hosts = t->leaves * t->hosts_per_leaf - on_leaves;
    t->hosts_elsewhere = f->host_count - on_leaves;
}

static void check_counts(struct ibshift_shape *t)
{
    for (unsigned l = 1; l <= t->levels; l++) {
        uint64_t expected = 1;

        for (unsigned i = 2; i <= t->levels; i++) {
            expected *= i <= l ? t->w[i] : t->m[i];
        }
        t->level[l].expected = expected > UINT32_MAX ? UINT32_MAX : (uint32_t)expected;
        if (t->level[l].switches != expected) {
            ibshift_warn(&t->findings, "level %u has %u switches, the whole shape has %u", l,
                         t->level[l].switches, t->level[l].expected);
        }
    }
}

int ibshift_shape_measure(const struct ibshift_fabric *f, struct ibshift_shape *t,
                          struct ibshift_error *err)
{
    struct votes *votes = malloc(sizeof(*votes));
    uint64_t *keys = malloc(((size_t)f->switch_count + 1) * sizeof(*keys));
    unsigned shared[IBSHIFT_LEVELS_MAX + 2] = {0};

    if (votes == NULL || keys == NULL) {
        free(votes);
        free(keys);
        return ibshift_fail(err, -ENOMEM, "no memory for %u switches", f->switch_count);
    }
    count_hosts(f, t);
    for (unsigned l = 1; l <= t->levels; l++) {
        find_usual(f, t, l, votes);
        shared[l] = sharing(f, t, l, keys);
    }
    name_parameters(t, shared);
    check_counts(t);
    compare_all(f, t);
    if (t->findings.count > f->switch_count && f->switch_count > 1) {
        t->kind = IBSHIFT_SHAPE_OTHER; /* levels, but no symmetry to speak of */
    }
    free(votes);
    free(keys);
    return 0;
}
