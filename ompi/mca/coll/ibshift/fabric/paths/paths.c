#include "fabric/paths/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/rate.h"
#include "fabric/paths/route.h"

#define CELLS_MAX ((size_t)1 << 28) /* of four bytes: 1 GiB */

/* Who uses a directed link: the first source leaf or host seen, and whether there are more. */
struct usage {
    uint32_t from, to; /* NO_LINK: none yet; MANY */
};

#define NONE IBSHIFT_NO_LINK
#define MANY (IBSHIFT_NO_LINK - 1)

static void note(uint32_t *seen, uint32_t who)
{
    *seen = *seen == NONE || *seen == who ? who : MANY;
}

static uint32_t leaf_node(const struct ibshift_fabric *f, uint32_t host)
{
    uint32_t node = ibshift_port_neighbour(f, f->hosts[host]);

    return node == IBSHIFT_NO_NODE ? f->ports[f->hosts[host]].node : node;
}

/* A member on the leaf that is not `to`, or NONE. first/second: two members of each leaf. */
static uint32_t source_on(const uint32_t (*two)[2], uint32_t leaf, uint32_t to)
{
    return two[leaf][0] != to ? two[leaf][0] : two[leaf][1];
}

static int set_members(struct ibshift_paths *p, const uint32_t *hosts, bool all_lids,
                       uint32_t *leaf_index, uint32_t (*two)[2], struct ibshift_error *err)
{
    const struct ibshift_fabric *f = p->fabric;

    for (uint32_t m = 0; m < p->hosts; m++) {
        uint32_t node;

        if (hosts[m] >= f->host_count) {
            return ibshift_fail(err, -EINVAL, "host %u of %u", hosts[m], f->host_count);
        }
        node = leaf_node(f, hosts[m]);
        if (leaf_index[node] == NONE) {
            two[p->leaves][0] = two[p->leaves][1] = NONE;
            leaf_index[node] = p->leaves++;
        }
        p->host[m] = hosts[m];
        p->leaf[m] = leaf_index[node];
        p->column[m + 1] = p->column[m] + (all_lids ? ibshift_host_lid_count(f, hosts[m]) : 1);
        two[p->leaf[m]][p->on_leaf[p->leaf[m]]++ == 0 ? 0 : 1] = m;
    }
    return 0;
}

/* Calls visit for every link but the first of every (leaf, destination LID); stops at an error. */
static int walk_all(struct ibshift_paths *p, const uint32_t (*two)[2],
                    void (*visit)(struct ibshift_paths *p, void *context, uint32_t leaf,
                                  uint32_t to, uint32_t column, const uint32_t *links,
                                  uint32_t count),
                    void *context, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = p->fabric;
    uint32_t links[IBSHIFT_ROUTE_MAX];

    /* One destination at a time: its column of the tables stays in the cache. */
    for (uint32_t to = 0; to < p->hosts; to++) {
        for (uint32_t leaf = 0; leaf < p->leaves; leaf++) {
            uint32_t from = source_on(two, leaf, to);

            for (uint32_t c = p->column[to]; from != NONE && c < p->column[to + 1]; c++) {
                unsigned lid = ibshift_host_lid(f, p->host[to]) + (c - p->column[to]);
                int walked;
                int count =
                    ibshift_route_walk(f, p->host[from], lid, links, IBSHIFT_ROUTE_MAX, &walked);

                if (count < 0) {
                    ibshift_route_explain(f, p->host[from], lid, count, links, walked, err);
                    return count;
                }
                visit(p, context, leaf, to, c, links + 1, count > 0 ? (uint32_t)count - 1 : 0);
            }
        }
    }
    return 0;
}

static void note_usage(struct ibshift_paths *p, void *context, uint32_t leaf, uint32_t to,
                       uint32_t column, const uint32_t *links, uint32_t count)
{
    struct usage *usage = context;

    for (uint32_t i = 0; i < count; i++) {
        note(&usage[links[i]].from, p->on_leaf[leaf] > 1 ? MANY : leaf);
        note(&usage[links[i]].to, to);
    }
}

struct fill {
    const uint32_t *shared; /* directed link -> shared link */
    uint32_t longest;
};

static void measure_width(struct ibshift_paths *p, void *context, uint32_t leaf, uint32_t to,
                          uint32_t column, const uint32_t *links, uint32_t count)
{
    struct fill *fill = context;
    uint32_t shared = 0;

    for (uint32_t i = 0; i < count; i++) {
        shared += fill->shared[links[i]] != NONE;
    }
    fill->longest = shared > fill->longest ? shared : fill->longest;
}

static void fill_cell(struct ibshift_paths *p, void *context, uint32_t leaf, uint32_t to,
                      uint32_t column, const uint32_t *links, uint32_t count)
{
    const struct fill *fill = context;
    uint32_t *cell = p->cells + ((size_t)leaf * p->column[p->hosts] + column) * p->width;

    for (uint32_t i = 0; i < count; i++) {
        if (fill->shared[links[i]] != NONE) {
            *cell++ = fill->shared[links[i]];
        }
    }
}

/* A link of one source or of one destination is as busy as that host's own cable: it matters only
 * where it is slower. */
static bool is_shared(const struct ibshift_paths *p, const struct usage *usage,
                      const uint32_t (*two)[2], double cost)
{
    if (usage->from == NONE) {
        return false;
    }
    return (usage->from == MANY || cost > p->host_cost[two[usage->from][0]] + 1e-6) &&
           (usage->to == MANY || cost > p->host_cost[usage->to] + 1e-6);
}

/* Numbers the shared links and prices them. shared: from directed to shared links. */
static int number_links(struct ibshift_paths *p, const uint32_t (*two)[2],
                        const struct usage *usage, uint32_t *shared)
{
    const struct ibshift_fabric *f = p->fabric;
    uint32_t fastest = ibshift_rate_of_hosts(f, p->host, p->hosts);

    for (uint32_t m = 0; m < p->hosts; m++) {
        p->host_cost[m] = (float)ibshift_link_cost(f, f->hosts[p->host[m]], fastest);
    }
    for (uint32_t l = 0; l < f->port_count; l++) {
        bool is = is_shared(p, &usage[l], two, ibshift_link_cost(f, l, fastest));

        shared[l] = is ? p->links++ : NONE;
    }
    p->link = malloc((p->links + 1) * sizeof(*p->link));
    p->cost = malloc((p->links + 1) * sizeof(*p->cost));
    if (p->link == NULL || p->cost == NULL) {
        return -ENOMEM;
    }
    for (uint32_t l = 0; l < f->port_count; l++) {
        if (shared[l] != NONE) {
            p->link[shared[l]] = l;
            p->cost[shared[l]] = (float)ibshift_link_cost(f, l, fastest);
        }
    }
    return 0;
}

static int fill_cells(struct ibshift_paths *p, const uint32_t (*two)[2], struct usage *usage,
                      uint32_t *shared, struct ibshift_error *err)
{
    struct fill fill = {.shared = shared, .longest = 1};
    size_t cells = (size_t)p->leaves * p->column[p->hosts];
    int status = walk_all(p, two, note_usage, usage, err);

    if (status == 0) {
        status = number_links(p, two, usage, shared);
    }
    if (status != 0) {
        return status;
    }
    walk_all(p, two, measure_width, &fill, err);
    p->width = fill.longest;
    if (cells > CELLS_MAX / p->width) {
        return ibshift_fail(err, -ENOMEM, "%u hosts on %u leaves: the routes do not fit in 1 GiB",
                            p->hosts, p->leaves);
    }
    p->cells = malloc(cells * p->width * sizeof(*p->cells) + 1);
    if (p->cells == NULL) {
        return -ENOMEM;
    }
    memset(p->cells, 0xff, cells * p->width * sizeof(*p->cells));
    return walk_all(p, two, fill_cell, &fill, err);
}

static int build(struct ibshift_paths *p, const uint32_t *hosts, bool all_lids,
                 struct ibshift_error *err)
{
    const struct ibshift_fabric *f = p->fabric;
    uint32_t *leaf_index = malloc((f->node_count + 1) * sizeof(*leaf_index));
    uint32_t(*two)[2] = malloc((p->hosts + 1) * sizeof(*two));
    struct usage *usage = malloc((f->port_count + 1) * sizeof(*usage));
    uint32_t *shared = malloc((f->port_count + 1) * sizeof(*shared));
    int status = -ENOMEM;

    if (leaf_index != NULL && two != NULL && usage != NULL && shared != NULL) {
        memset(leaf_index, 0xff, f->node_count * sizeof(*leaf_index));
        memset(usage, 0xff, f->port_count * sizeof(*usage));
        status = set_members(p, hosts, all_lids, leaf_index, two, err);
        if (status == 0) {
            status = fill_cells(p, (const uint32_t(*)[2])two, usage, shared, err);
        }
    }
    free(shared);
    free(usage);
    free(two);
    free(leaf_index);
    return status;
}

static int build_paths(const struct ibshift_fabric *fabric, const uint32_t *hosts, uint32_t count,
                       bool all_lids, struct ibshift_paths **paths, struct ibshift_error *err)
{
    struct ibshift_paths *p = calloc(1, sizeof(*p));
    int status = -ENOMEM;

    if (fabric->lft == NULL) {
        free(p);
        return ibshift_fail(err, -EINVAL, "the fabric has no forwarding tables");
    }
    if (p != NULL) {
        p->fabric = fabric;
        p->hosts = count;
        p->host = calloc(count + 1, sizeof(*p->host));
        p->leaf = calloc(count + 1, sizeof(*p->leaf));
        p->column = calloc(count + 1, sizeof(*p->column));
        p->on_leaf = calloc(count + 1, sizeof(*p->on_leaf));
        p->host_cost = calloc(count + 1, sizeof(*p->host_cost));
        if (p->host && p->leaf && p->column && p->on_leaf && p->host_cost) {
            status = build(p, hosts, all_lids, err);
        }
    }
    if (status != 0) {
        ibshift_paths_free(p);
        return status == -ENOMEM
                   ? ibshift_fail(err, status, "no memory for the routes of %u hosts", count)
                   : status;
    }
    *paths = p;
    return 0;
}

int ibshift_paths_build(const struct ibshift_fabric *fabric, const uint32_t *hosts, uint32_t count,
                        struct ibshift_paths **paths, struct ibshift_error *err)
{
    return build_paths(fabric, hosts, count, true, paths, err);
}

int ibshift_paths_build_base(const struct ibshift_fabric *fabric, const uint32_t *hosts,
                             uint32_t count, struct ibshift_paths **paths,
                             struct ibshift_error *err)
{
    return build_paths(fabric, hosts, count, false, paths, err);
}

void ibshift_paths_free(struct ibshift_paths *p)
{
    if (p == NULL) {
        return;
    }
    free(p->host);
    free(p->leaf);
    free(p->column);
    free(p->on_leaf);
    free(p->link);
    free(p->cost);
    free(p->host_cost);
    free(p->cells);
    free(p);
}

uint32_t ibshift_paths_modes(const struct ibshift_paths *p)
{
    uint32_t least = p->hosts > 0 ? UINT32_MAX : 1;

    for (uint32_t m = 0; m < p->hosts; m++) {
        uint32_t lids = ibshift_paths_lids(p, m);

        least = lids < least ? lids : least;
    }
    return least;
}

/* Which links are entered from one that is left. */
static void find_entered(const struct ibshift_paths *p, const bool *is_left, bool *is_entered)
{
    size_t cells = (size_t)p->leaves * p->column[p->hosts];

    for (size_t cell = 0; cell < cells; cell++) {
        const uint32_t *links = p->cells + cell * p->width;

        for (uint32_t i = 1; i < p->width && links[i] != IBSHIFT_NO_LINK; i++) {
            if (is_left[links[i - 1]]) {
                is_entered[links[i]] = true;
            }
        }
    }
}

/* Links that are entered from none are taken away until no more are: circles stay. */
int ibshift_paths_circle(const struct ibshift_paths *p, bool *has_circle)
{
    bool *is_left = malloc(p->links + 1), *is_entered = malloc(p->links + 1);
    uint32_t left = p->links, before = left + 1;
    int rc = is_left == NULL || is_entered == NULL ? -ENOMEM : 0;

    if (rc == 0) {
        memset(is_left, true, p->links);
    }
    while (rc == 0 && left > 0 && left < before) {
        memset(is_entered, false, p->links);
        find_entered(p, is_left, is_entered);
        before = left;
        left = 0;
        for (uint32_t i = 0; i < p->links; i++) {
            is_left[i] = is_left[i] && is_entered[i];
            left += is_left[i];
        }
    }
    *has_circle = left > 0;
    free(is_left);
    free(is_entered);
    return rc;
}
