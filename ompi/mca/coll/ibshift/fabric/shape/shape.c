#include "fabric/shape/shape.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ibshift_shape_free(struct ibshift_shape *shape)
{
    free(shape->node_level);
    free(shape->digits);
    for (unsigned l = 0; l < IBSHIFT_LEVELS_MAX + 2; l++) {
        free(shape->down[l]);
        free(shape->up[l]);
    }
    memset(shape, 0, sizeof(*shape));
}

/* Distance from the nearest switch with at least `least` hosts, plus 1. */
static void find_levels(const struct ibshift_fabric *f, unsigned least, uint8_t *level,
                        uint32_t *queue)
{
    uint32_t head = 0, tail = 0;

    memset(level, 0, f->node_count);
    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (ibshift_node_hosts(f, f->switches[s]) >= least) {
            level[f->switches[s]] = 1;
            queue[tail++] = f->switches[s];
        }
    }
    while (head < tail) {
        uint32_t node = queue[head++];

        for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
            uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));

            if (next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next) && level[next] == 0 &&
                level[node] < 255) {
                level[next] = (uint8_t)(level[node] + 1);
                queue[tail++] = next;
            }
        }
    }
}

/* Levels are a tree's when every cable joins neighbouring ones. */
static bool are_levels(const struct ibshift_fabric *f, struct ibshift_shape *shape)
{
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t a = f->ports[p].node, b = ibshift_port_neighbour(f, p);
        int step = b == IBSHIFT_NO_NODE || shape->node_level[a] == 0 || shape->node_level[b] == 0
                       ? 1
                       : shape->node_level[a] - shape->node_level[b];

        if (step != 1 && step != -1) {
            ibshift_warn(&shape->findings, "'%s' and '%s' are of the same level %u, yet connected",
                         ibshift_node_name(f, a), ibshift_node_name(f, b), shape->node_level[a]);
            return false;
        }
    }
    return shape->levels <= IBSHIFT_LEVELS_MAX && shape->levels > 0;
}

static uint32_t root_of(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

/* Components of the switches whose level lies within [low, high]: group[s] is the same within one.
 */
static void find_components(const struct ibshift_fabric *f, const uint8_t *level, unsigned low,
                            unsigned high, uint32_t *group)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        group[s] = s;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t a = f->ports[p].node, b = ibshift_port_neighbour(f, p);

        if (b != IBSHIFT_NO_NODE && level[a] >= low && level[a] <= high && level[b] >= low &&
            level[b] <= high) {
            uint32_t x = root_of(group, f->nodes[a].switch_index);
            uint32_t y = root_of(group, f->nodes[b].switch_index);

            group[x < y ? y : x] = x < y ? x : y;
        }
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        group[s] = root_of(group, s);
    }
}

/* Numbers the inner components within each outer one, 0.. in the order of the switches. */
static void number_within(const struct ibshift_fabric *f, const uint8_t *level, unsigned low,
                          unsigned high, const uint32_t *outer, const uint32_t *inner,
                          unsigned digit, uint16_t *digits, uint32_t *scratch)
{
    uint32_t *next = scratch, *number = scratch + f->switch_count;

    memset(scratch, 0, 2 * (size_t)f->switch_count * sizeof(*scratch));
    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned l = level[f->switches[s]];

        if (l < low || l > high) {
            continue;
        }
        if (number[inner[s]] == 0) {
            number[inner[s]] = ++next[outer[s]];
        }
        digits[(size_t)s * (IBSHIFT_LEVELS_MAX + 1) + digit] = (uint16_t)(number[inner[s]] - 1);
    }
}

static int find_tuples(const struct ibshift_fabric *f, struct ibshift_shape *t,
                       struct ibshift_error *err)
{
    size_t switches = (size_t)f->switch_count + 1;
    uint32_t *scratch = calloc(2 * switches, sizeof(*scratch));
    bool ok = scratch != NULL;

    t->digits = calloc(switches * (IBSHIFT_LEVELS_MAX + 1), sizeof(*t->digits));
    for (unsigned l = 1; l <= t->levels; l++) {
        t->down[l] = malloc(switches * sizeof(**t->down));
        t->up[l] = malloc(switches * sizeof(**t->up));
        ok = ok && t->down[l] != NULL && t->up[l] != NULL;
    }
    if (!ok || t->digits == NULL) {
        free(scratch);
        return ibshift_fail(err, -ENOMEM, "no memory for the tuples of %u switches",
                            f->switch_count);
    }
    for (unsigned l = 1; l <= t->levels; l++) {
        find_components(f, t->node_level, 1, l, t->down[l]);
        find_components(f, t->node_level, l, t->levels, t->up[l]);
    }
    for (unsigned i = 2; i <= t->levels; i++) {
        number_within(f, t->node_level, 1, i - 1, t->down[i], t->down[i - 1], i, t->digits,
                      scratch);
        number_within(f, t->node_level, i, t->levels, t->up[i - 1], t->up[i], i, t->digits,
                      scratch);
    }
    free(scratch);
    return 0;
}

/* One reading of the fabric as a tree, its leaves having at least `least` hosts. */
static int try_tree(const struct ibshift_fabric *f, unsigned least, struct ibshift_shape *t,
                    struct ibshift_error *err)
{
    uint32_t *queue = malloc(((size_t)f->switch_count + 1) * sizeof(*queue));
    int rc = 0;

    t->node_level = calloc((size_t)f->node_count + 1, 1);
    if (queue == NULL || t->node_level == NULL) {
        free(queue);
        return ibshift_fail(err, -ENOMEM, "no memory for %u nodes", f->node_count);
    }
    find_levels(f, least, t->node_level, queue);
    free(queue);
    for (uint32_t n = 0; n < f->node_count; n++) {
        t->levels = t->node_level[n] > t->levels ? t->node_level[n] : t->levels;
    }
    if (are_levels(f, t)) {
        t->kind = IBSHIFT_SHAPE_TREE;
        rc = find_tuples(f, t, err);
        if (rc == 0) {
            rc = ibshift_shape_measure(f, t, err);
        }
    }
    return rc;
}

/* What does not fit a reading: places that differ, hosts off the leaves, switches too many or too
 * few. */
static uint64_t misfit(const struct ibshift_shape *t)
{
    uint64_t sum = (uint64_t)t->findings.count + t->hosts_elsewhere;

    for (unsigned l = 1; l <= t->levels && l <= IBSHIFT_LEVELS_MAX; l++) {
        const struct ibshift_level *v = &t->level[l];

        uint32_t off =
            v->switches > v->expected ? v->switches - v->expected : v->expected - v->switches;

        sum += off > 0 ? off - 1 : 0; /* one of them is a finding */
    }
    return sum;
}

static bool is_better(const struct ibshift_shape *a, const struct ibshift_shape *b)
{
    if ((a->kind == IBSHIFT_SHAPE_OTHER) != (b->kind == IBSHIFT_SHAPE_OTHER)) {
        return a->kind != IBSHIFT_SHAPE_OTHER;
    }
    if (misfit(a) != misfit(b)) {
        return misfit(a) < misfit(b);
    }
    return a->levels != b->levels ? a->levels < b->levels : a->hosts_elsewhere < b->hosts_elsewhere;
}

/* Hosts may hang on spines (service nodes), and leaves may have few: which switches are the leaves
 * is tried for every number of hosts that one has. */
static int try_trees(const struct ibshift_fabric *f, const bool *is_count,
                     struct ibshift_shape *best, struct ibshift_error *err)
{
    int rc = try_tree(f, 1, best, err);

    for (unsigned least = 2; rc == 0 && least <= IBSHIFT_PORT_MAX; least++) {
        struct ibshift_shape other = {.kind = IBSHIFT_SHAPE_OTHER};

        if (!is_count[least] || (best->kind != IBSHIFT_SHAPE_OTHER && misfit(best) == 0)) {
            continue;
        }
        rc = try_tree(f, least, &other, err);
        if (rc == 0 && is_better(&other, best)) {
            struct ibshift_shape worse = *best;

            *best = other;
            other = worse;
        }
        ibshift_shape_free(&other);
    }
    return rc;
}

static int count_parts(const struct ibshift_fabric *f, struct ibshift_shape *t,
                       struct ibshift_error *err)
{
    uint32_t *part = malloc(((size_t)f->node_count + 1) * sizeof(*part));
    bool *seen = calloc((size_t)f->node_count + 1, sizeof(*seen));

    if (part == NULL || seen == NULL) {
        free(part);
        free(seen);
        return ibshift_fail(err, -ENOMEM, "no memory for %u nodes", f->node_count);
    }
    for (uint32_t n = 0; n < f->node_count; n++) {
        part[n] = n;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t next = ibshift_port_neighbour(f, p);

        if (next != IBSHIFT_NO_NODE) {
            part[root_of(part, f->ports[p].node)] = root_of(part, next);
        }
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t root = root_of(part, f->ports[f->hosts[h]].node);

        if (!seen[root]) {
            seen[root] = true;
            t->part_host[t->parts > 0] = h;
            t->parts++;
        }
    }
    free(part);
    free(seen);
    return 0;
}

int ibshift_shape_find(const struct ibshift_fabric *f, struct ibshift_shape *shape,
                       struct ibshift_error *err)
{
    bool is_count[IBSHIFT_PORT_MAX + 1] = {false};
    unsigned most = 0;
    int rc = 0;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned hosts = ibshift_node_hosts(f, f->switches[s]);

        is_count[hosts] = true;
        most = hosts > most ? hosts : most;
    }
    memset(shape, 0, sizeof(*shape));
    if (!ibshift_shape_torus(f, shape)) {
        rc = try_trees(f, is_count, shape, err);
    }
    rc = rc == 0 ? count_parts(f, shape, err) : rc;
    if (rc != 0) {
        ibshift_shape_free(shape);
    }
    shape->hosts_per_leaf = most;
    return rc;
}

/* ---- in words ---- */

static void append(char *text, size_t size, size_t *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t size, size_t *at, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text + *at, size - *at, format, args);
    va_end(args);
    *at += length > 0 ? (size_t)length : 0;
    *at = *at < size ? *at : size - 1;
}

static bool is_kary(const struct ibshift_shape *t)
{
    for (unsigned l = 1; l <= t->levels; l++) {
        if (t->m[l] != t->m[1] || t->p[l] != 1 || t->w[l] != (l == 1 ? 1 : t->m[1])) {
            return false;
        }
    }
    return t->levels > 1;
}

static void name_tree(const struct ibshift_shape *t, char *text, size_t size)
{
    const unsigned *lists[] = {t->m, t->w, t->p};
    size_t at = 0;

    if (t->levels == 1) {
        append(text, size, &at, t->leaves == 1 ? "one switch" : "%u switches apart", t->leaves);
        return;
    }
    if (is_kary(t)) {
        append(text, size, &at, "%u-ary-%u-tree", t->m[1], t->levels);
        return;
    }
    append(text, size, &at, "%s(%u", t->kind == IBSHIFT_SHAPE_QFT ? "QFT" : "PGFT", t->levels);
    for (int i = 0; i < 3; i++) {
        for (unsigned l = 1; l <= t->levels; l++) {
            append(text, size, &at, "%s%u", l == 1 ? "; " : ",", lists[i][l]);
        }
    }
    append(text, size, &at, ")");
}

void ibshift_shape_name(const struct ibshift_shape *t, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    if (t->kind == IBSHIFT_SHAPE_TORUS) {
        for (unsigned k = 0; k < t->dims; k++) {
            append(text, size, &at, "%s%u", k == 0 ? "" : "x", t->dim[k]);
        }
        append(text, size, &at, " torus, %u host%s per switch", t->hosts_per_leaf,
               t->hosts_per_leaf == 1 ? "" : "s");
    } else if (t->kind == IBSHIFT_SHAPE_OTHER) {
        append(text, size, &at, "irregular");
    } else {
        name_tree(t, text, size);
    }
}

void ibshift_shape_tuple(const struct ibshift_shape *t, const struct ibshift_fabric *f,
                         uint32_t node, char *text, size_t size)
{
    const uint16_t *digits =
        t->digits + (size_t)f->nodes[node].switch_index * (IBSHIFT_LEVELS_MAX + 1);
    size_t at = 0;

    text[0] = '\0';
    if (t->kind == IBSHIFT_SHAPE_TORUS) {
        for (unsigned k = 0; k < t->dims; k++) {
            append(text, size, &at, "%s%u", k == 0 ? "" : ".", digits[k]);
        }
        return;
    }
    append(text, size, &at, "%u", t->node_level[node]);
    for (unsigned i = t->levels; i >= 2; i--) {
        append(text, size, &at, ".%u", digits[i]);
    }
}
