#include "route/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * A leaf without hosts looks like a root, and joins planes that it does not.
 * True: t->f is a copy without the cables of such switches, the shape is to be found anew.
 */
static int prune(struct route_tree *t, struct ibshift_error *err)
{
    bool *is_left_out = pool_new(&t->pool, t->f->node_count, sizeof(*is_left_out));
    struct ibshift_fabric *copy;
    bool found = false;
    int rc;

    for (uint32_t s = 0; s < t->f->switch_count; s++) {
        if (t->shape.node_level[t->f->switches[s]] > 1 && is_useless(t, s)) {
            is_left_out[t->f->switches[s]] = found = true;
        }
    }
    if (!found) {
        return 0;
    }
    copy = ibshift_fabric_new();
    rc = copy == NULL ? ibshift_fail(err, -ENOMEM, "no memory for %u nodes", t->f->node_count)
                      : route_copy_graph(t->f, is_left_out, copy, err);
    if (rc != 0) {
        ibshift_fabric_free(copy);
        return rc;
    }
    ibshift_fabric_free(t->pruned);
    t->f = t->pruned = copy;
    return 1;
}

/* A switch, or the part that it is the first of, by what it is to be sorted by. */
struct keyed {
    uint64_t key;
    uint32_t sw;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->sw < y->sw ? -1 : x->sw > y->sw;
}

/* sizes: [inner], largest: [outer], both of them by switch. */
static void measure(const struct route_tree *t, unsigned l, uint32_t *sizes, uint32_t *largest)
{
    const uint32_t *inner = t->shape.up[l], *outer = t->shape.up[l - 1];
    uint32_t switches = t->f->switch_count;

    memset(sizes, 0, switches * sizeof(*sizes));
    memset(largest, 0, switches * sizeof(*largest));
    for (uint32_t s = 0; s < switches; s++) {
        sizes[inner[s]] += t->level[s] >= l;
    }
    for (uint32_t s = 0; s < switches; s++) {
        if (t->level[s] >= l && sizes[inner[s]] > largest[outer[s]]) {
            largest[outer[s]] = sizes[inner[s]];
        }
    }
}

/* Planes are components of "levels from l", of which a component of "levels from l - 1" has several:
 * numbered by their digits, those that are not half of their largest sister last. */
static void number_level(struct route_tree *t, unsigned l, struct keyed *planes, uint32_t *sizes,
                         uint32_t *largest)
{
    const uint32_t *inner = t->shape.up[l], *outer = t->shape.up[l - 1];
    uint32_t *number = largest, switches = t->f->switch_count, count = 0, next = 0;

    measure(t, l, sizes, largest);
    for (uint32_t s = 0; s < switches; s++) {
        if (t->level[s] >= l && sizes[inner[s]] != 0) {
            uint64_t is_small = 2 * sizes[inner[s]] < largest[outer[s]];

            planes[count++] = (struct keyed){
                (uint64_t)outer[s] << 32 | is_small << 16 | route_tree_digit(t, s, l), inner[s]};
            sizes[inner[s]] = 0;
        }
    }
    qsort(planes, count, sizeof(*planes), by_key);
    for (uint32_t i = 0; i < count; i++) {
        next = i > 0 && planes[i].key >> 32 == planes[i - 1].key >> 32 ? next + 1 : 0;
        number[planes[i].sw] = next;
    }
    for (uint32_t s = 0; s < switches; s++) {
        if (t->level[s] >= l) {
            t->shape.digits[(size_t)s * (IBSHIFT_LEVELS_MAX + 1) + l] = (uint16_t)number[inner[s]];
        }
    }
}

/* A switch cut off from its plane is no plane of its own; numbers such parts
 * last, so that the others keep the numbers that the formulas know. */
static void number_parents(struct route_tree *t)
{
    uint32_t switches = t->f->switch_count;
    struct keyed *planes = pool_new(&t->pool, switches, sizeof(*planes));
    uint32_t *sizes = pool_new(&t->pool, switches, sizeof(*sizes));
    uint32_t *largest = pool_new(&t->pool, switches, sizeof(*largest));

    for (unsigned l = 2; l <= t->h; l++) {
        number_level(t, l, planes, sizes, largest);
    }
}

void route_tree_free(struct route_tree *t)
{
    ibshift_shape_free(&t->shape);
    ibshift_fabric_free(t->pruned);
    pool_free(&t->pool);
    memset(t, 0, sizeof(*t));
}

/* The lowest level whose components join all leaves. */
static int find_height(struct route_tree *t, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = t->f;
    uint32_t first = route_host_switch(f, 0), **part = t->shape.down;

    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t sw = route_host_switch(f, h);

        if (sw == IBSHIFT_NO_SWITCH) {
            return ibshift_fail(err, -ENOTSUP, "host '%s' is cabled to no switch",
                                ibshift_host_name(f, h));
        }
        while (t->h < t->shape.levels && (t->h == 0 || part[t->h][sw] != part[t->h][first] ||
                                          t->h < t->shape.node_level[f->switches[sw]])) {
            t->h++;
        }
        if (part[t->h][sw] != part[t->h][first]) {
            return ibshift_fail(err, -ENOTSUP, "no cables join switch '%s' and switch '%s'",
                                ibshift_node_name(f, f->switches[first]),
                                ibshift_node_name(f, f->switches[sw]));
        }
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned level = t->shape.node_level[f->switches[s]];

        t->level[s] = (uint8_t)(level <= t->h ? level : 0);
    }
    return 0;
}

/* Labels those that share all digits, and says how many usually do. */
static unsigned label_twins(struct route_tree *t, unsigned l, struct keyed *twins)
{
    uint32_t count = 0, votes[IBSHIFT_PORT_MAX + 1] = {0};
    unsigned usual = 1;

    for (uint32_t s = 0; s < t->f->switch_count; s++) {
        if (t->level[s] == l) {
            twins[count++] =
                (struct keyed){(uint64_t)t->shape.down[l][s] << 32 | t->shape.up[l][s], s};
        }
    }
    qsort(twins, count, sizeof(*twins), by_key);
    for (uint32_t i = 0, run; i < count; i += run) {
        for (run = 0; i + run < count && twins[i + run].key == twins[i].key; run++) {
            t->label[twins[i + run].sw] = (uint8_t)(run < IBSHIFT_PORT_MAX ? run : 255);
            t->twin[twins[i + run].sw] = twins[i].sw;
            t->twin[twins[i + (run > 0 ? run - 1 : 0)].sw] = twins[i + run].sw;
        }
        votes[run < IBSHIFT_PORT_MAX ? run : IBSHIFT_PORT_MAX]++;
    }
    for (unsigned i = 1; i <= IBSHIFT_PORT_MAX; i++) {
        usual = votes[i] > votes[usual] ? i : usual;
    }
    return usual;
}

static unsigned at_least_1(unsigned x)
{
    return x > 0 ? x : 1;
}

static void find_parameters(struct route_tree *t)
{
    const struct ibshift_fabric *f = t->f;
    struct keyed *twins = pool_new(&t->pool, f->switch_count, sizeof(*twins));

    t->children[1] = at_least_1(t->shape.hosts_per_leaf);
    t->parents[1] = t->shared[1] = t->cables[1] = t->ways[1] = 1;
    for (unsigned l = 2; l <= t->h; l++) {
        const struct ibshift_level *below = &t->shape.level[l - 1];

        t->shared[l] = l < t->h ? label_twins(t, l, twins) : 1;
        t->parents[l] = at_least_1((below->groups_up + t->shared[l] - 1) / t->shared[l]);
        t->cables[l] = at_least_1(below->ports_up);
        t->ups[l - 1] = t->parents[l] * t->shared[l] * t->cables[l];
        t->ways[l] = t->shared[l - 1] * t->cables[l];
        for (uint32_t s = 0; s < f->switch_count; s++) {
            unsigned digit = route_tree_digit(t, s, l);

            if (t->level[s] == 1 && digit + 1 > t->children[l]) {
                t->children[l] = digit + 1;
            }
        }
    }
}

static int count_places(struct route_tree *t, struct ibshift_error *err)
{
    uint64_t places = 1;

    for (unsigned l = 1; l <= t->h; l++) {
        unsigned down = t->children[l] * t->ways[l];

        places *= t->children[l];
        t->down_stride = down > t->down_stride ? down : t->down_stride;
        t->up_stride = l < t->h && t->ups[l] > t->up_stride ? t->ups[l] : t->up_stride;
        if (places > 16 * (uint64_t)IBSHIFT_LID_MAX || t->down_stride > 65536) {
            return ibshift_fail(err, -ENOTSUP,
                                "the parts of level %u differ too much for a tree: the fullest has "
                                "%u, which would make %llu places for %u hosts",
                                l, t->children[l], (unsigned long long)places, t->f->host_count);
        }
    }
    t->places = (uint32_t)places;
    return 0;
}

/* Index of a port among those with the same neighbour, by number. */
static unsigned cable_index(const struct ibshift_fabric *f, uint32_t node, unsigned port,
                            uint32_t next)
{
    unsigned index = 0;

    for (unsigned p = 1; p < port; p++) {
        index += ibshift_port_neighbour(f, ibshift_node_port(f, node, p)) == next;
    }
    return index;
}

static void enter_port(struct route_tree *t, uint32_t s, unsigned port, uint32_t other)
{
    const struct ibshift_fabric *f = t->f;
    unsigned l = t->level[s];
    unsigned cable = cable_index(f, f->switches[s], port, f->switches[other]);
    unsigned label = t->label[other];

    if (t->level[other] == l + 1) {
        unsigned digit = route_tree_digit(t, other, l + 1);

        if (digit < t->parents[l + 1] && label < t->shared[l + 1] && cable < t->cables[l + 1]) {
            t->up[(size_t)s * t->up_stride + digit +
                  t->parents[l + 1] * (label + t->shared[l + 1] * cable)] = (uint8_t)port;
        }
    } else if (t->level[other] + 1u == l) {
        unsigned child = route_tree_digit(t, other, l);

        if (child < t->children[l] && label < t->shared[l - 1] && cable < t->cables[l]) {
            t->down[(size_t)s * t->down_stride + child * t->ways[l] + label * t->cables[l] +
                    cable] = (uint8_t)port;
        }
    }
}

static void count_missing(struct route_tree *t, uint32_t s)
{
    unsigned l = t->level[s];

    for (unsigned i = 0; l < t->h && i < t->ups[l]; i++) {
        t->missing += t->up[(size_t)s * t->up_stride + i] == 0;
    }
    for (unsigned i = 0; l > 1 && i < t->children[l] * t->ways[l]; i++) {
        t->missing += t->down[(size_t)s * t->down_stride + i] == 0;
    }
}

static void fill_ports(struct route_tree *t)
{
    const struct ibshift_fabric *f = t->f;

    t->up = pool_new(&t->pool, f->switch_count, t->up_stride + 1);
    t->down = pool_new(&t->pool, f->switch_count, t->down_stride + 1);
    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned ports = t->level[s] != 0 ? f->nodes[f->switches[s]].port_count : 0;

        for (unsigned p = 1; p <= ports; p++) {
            uint32_t next = route_next_switch(f, s, p);

            if (next != IBSHIFT_NO_SWITCH) {
                enter_port(t, s, p, next);
            }
        }
        if (t->level[s] != 0) {
            count_missing(t, s);
        }
    }
}

static void add_cables(struct route_tree *t, uint32_t s, int step, uint32_t *count)
{
    unsigned ports = t->level[s] != 0 ? t->f->nodes[t->f->switches[s]].port_count : 0;

    for (unsigned p = 1; p <= ports; p++) {
        uint32_t next = route_next_switch(t->f, s, p);

        if (next != IBSHIFT_NO_SWITCH && t->level[next] != 0 &&
            t->level[next] == t->level[s] + step) {
            t->cable[(*count)++] = (struct route_cable){next, (uint8_t)p};
        }
    }
}

static void list_cables(struct route_tree *t)
{
    uint32_t count = 0;

    t->cable = pool_new(&t->pool, t->f->port_count, sizeof(*t->cable));
    t->first_up = pool_new(&t->pool, (size_t)t->f->switch_count + 1, sizeof(*t->first_up));
    t->first_down = pool_new(&t->pool, (size_t)t->f->switch_count + 1, sizeof(*t->first_down));
    t->by_level = pool_new(&t->pool, t->f->switch_count, sizeof(*t->by_level));
    for (uint32_t s = 0; s < t->f->switch_count; s++) {
        t->first_up[s] = count;
        add_cables(t, s, 1, &count);
        t->first_down[s] = count;
        add_cables(t, s, -1, &count);
    }
    t->first_up[t->f->switch_count] = count;
    count = 0;
    for (unsigned l = 0; l <= t->h; l++) {
        for (uint32_t s = 0; s < t->f->switch_count; s++) {
            if (t->level[s] == l) {
                t->by_level[count++] = s;
            }
        }
    }
}

/* Hosts of a leaf take its first places in the order of their ports, each at its port's place if
 * all leaves have their hosts at the same ports. */
static void place_hosts(struct route_tree *t)
{
    const struct ibshift_fabric *f = t->f;
    bool used[IBSHIFT_PORT_MAX + 1] = {false};
    unsigned rank[IBSHIFT_PORT_MAX + 1], ports = 0;

    for (uint32_t h = 0; h < f->host_count; h++) {
        used[f->ports[f->ports[f->hosts[h]].peer].number] |= t->level[route_host_switch(f, h)] == 1;
    }
    for (unsigned p = 0; p <= IBSHIFT_PORT_MAX; p++) {
        rank[p] = ports;
        ports += used[p];
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t port = f->ports[f->hosts[h]].peer, leaf = route_host_switch(f, h);
        uint32_t place = 0;

        for (unsigned l = t->h; l >= 2; l--) {
            place = place * t->children[l] + route_tree_digit(t, leaf, l);
        }
        if (t->level[leaf] != 1) {
            t->place[h] = ROUTE_NO_PLACE;
            t->missing++;
        } else if (ports <= t->children[1]) {
            t->place[h] = place * t->children[1] + rank[f->ports[port].number];
        } else {
            unsigned before = 0;

            for (unsigned p = 1; p < f->ports[port].number; p++) {
                uint32_t next = ibshift_port_neighbour(f, port - p);

                before += next != IBSHIFT_NO_NODE && f->nodes[next].kind == IBSHIFT_NODE_HCA;
            }
            t->place[h] = place * t->children[1] + before;
        }
    }
}

static int find_shape(struct route_tree *t, struct ibshift_error *err)
{
    int rc;

    do {
        ibshift_shape_free(&t->shape);
        rc = ibshift_shape_find(t->f, &t->shape, err);
        if (rc != 0) {
            return rc;
        }
        if (t->shape.kind == IBSHIFT_SHAPE_TORUS || t->shape.levels == 0 ||
            t->shape.digits == NULL || t->shape.down[1] == NULL) {
            return ibshift_fail(err, -ENOTSUP, "not a tree: %s",
                                t->shape.kind == IBSHIFT_SHAPE_TORUS ? "it is a torus"
                                : t->shape.findings.count != 0       ? t->shape.findings.text[0]
                                                                     : "no levels are found");
        }
        rc = prune(t, err);
    } while (rc > 0);
    return rc;
}

static int check_crossing(const struct route_tree *t, bool is_crossed, struct ibshift_error *err)
{
    for (unsigned l = 2; l <= t->h; l++) {
        if (t->shared[l] == 1) {
            continue;
        }
        if (is_crossed) {
            return 0;
        }
        for (uint32_t s = 0; s < t->f->switch_count; s++) {
            if (t->level[s] == l && t->label[s] == 1) {
                return ibshift_fail(err, -ENOTSUP,
                                    "switch '%s' of level %u joins the same parts as another one "
                                    "of its plane: cross-connected, take engine qft",
                                    ibshift_node_name(t->f, t->f->switches[s]), l);
            }
        }
    }
    return is_crossed ? ibshift_fail(err, -ENOTSUP,
                                     "no level of the tree is cross-connected: take engine pgft")
                      : 0;
}

static int find_tree(struct route_tree *t, bool is_crossed, struct ibshift_error *err)
{
    uint32_t switches;
    int rc = find_shape(t, err);

    if (rc != 0) {
        return rc;
    }
    switches = t->f->switch_count;
    t->level = pool_new(&t->pool, switches, 1);
    t->label = pool_new(&t->pool, switches, 1);
    t->twin = pool_new(&t->pool, switches, sizeof(*t->twin));
    t->place = pool_new(&t->pool, t->f->host_count, sizeof(*t->place));
    for (uint32_t s = 0; s < switches; s++) {
        t->twin[s] = s;
    }
    rc = find_height(t, err);
    if (rc != 0) {
        return rc;
    }
    number_parents(t);
    find_parameters(t);
    rc = count_places(t, err);
    if (rc != 0) {
        return rc;
    }
    fill_ports(t);
    list_cables(t);
    place_hosts(t);
    return check_crossing(t, is_crossed, err);
}

int route_tree_find(const struct ibshift_fabric *f, bool is_crossed, struct route_tree *t,
                    struct ibshift_error *err)
{
    int rc;

    *t = (struct route_tree){.f = f};
    rc = find_tree(t, is_crossed, err);
    if (rc != 0) {
        route_tree_free(t);
    }
    return rc;
}
