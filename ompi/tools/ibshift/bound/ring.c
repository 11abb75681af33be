#include "bound/ring.h"

#include "fabric/graph/random.h"

#define EFFORT 3e7 /* links that are looked at: a tenth of a second */

struct ring {
    const struct ibshift_paths *paths;
    uint32_t *first, *hosts; /* [leaf]: along[first .. first + hosts) */
    const uint32_t *along;
    uint32_t *leaf_at; /* [place] */
    uint32_t *entry;   /* [leaf]: the host, of its own, that is the first */
    double *load;      /* [shared link] */
};

static const uint32_t *links_between(const struct ring *r, uint32_t place)
{
    uint32_t from = r->leaf_at[place], to = r->leaf_at[(place + 1) % r->paths->leaves];

    return ibshift_paths_links(r->paths, r->along[r->first[from]],
                               r->along[r->first[to] + r->entry[to]], 0);
}

/* By how much links are busier than a host's cable, in all. */
static double excess_of(struct ring *r)
{
    const struct ibshift_paths *p = r->paths;
    double excess = 0;

    for (uint32_t place = 0; place < p->leaves; place++) {
        const uint32_t *link = links_between(r, place);

        for (uint32_t i = 0; i < p->width && link[i] != IBSHIFT_NO_LINK; i++) {
            double before = r->load[link[i]], after = before + p->cost[link[i]];

            r->load[link[i]] = after;
            excess += (after > 1.0001 ? after - 1 : 0) - (before > 1.0001 ? before - 1 : 0);
        }
    }
    for (uint32_t place = 0; place < p->leaves; place++) {
        const uint32_t *link = links_between(r, place);

        for (uint32_t i = 0; i < p->width && link[i] != IBSHIFT_NO_LINK; i++) {
            r->load[link[i]] = 0;
        }
    }
    return excess;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t kept = *a;

    *a = *b;
    *b = kept;
}

/* Another host to come in by, or two leaves that change places; kept where it costs no more. */
static void search(struct ring *r)
{
    const struct ibshift_paths *p = r->paths;
    double excess = excess_of(r), tries = EFFORT / ((double)p->leaves * (p->width + 1));
    uint64_t seed = 1;

    while (excess > 0 && tries-- > 0) {
        uint32_t a = (uint32_t)ibshift_random_below(&seed, p->leaves);
        uint32_t b = (uint32_t)ibshift_random_below(&seed, p->leaves), before = r->entry[a];
        bool is_swap = ibshift_random_below(&seed, 2) == 0;
        double after;

        if (is_swap) {
            swap(&r->leaf_at[a], &r->leaf_at[b]);
        } else {
            r->entry[a] = (uint32_t)ibshift_random_below(&seed, r->hosts[a]);
        }
        after = excess_of(r);
        if (after <= excess) {
            excess = after;
        } else if (is_swap) {
            swap(&r->leaf_at[a], &r->leaf_at[b]);
        } else {
            r->entry[a] = before;
        }
    }
}

void fabric_ring_find(const struct ibshift_paths *paths, uint32_t *along, struct pool *pool)
{
    uint32_t *kept = pool_new(pool, paths->hosts, sizeof(*kept)), leaves = 0, at = 0;
    struct ring r = {.paths = paths,
                     .first = pool_new(pool, paths->leaves, sizeof(*r.first)),
                     .hosts = pool_new(pool, paths->leaves, sizeof(*r.hosts)),
                     .along = kept,
                     .leaf_at = pool_new(pool, paths->leaves, sizeof(*r.leaf_at)),
                     .entry = pool_new(pool, paths->leaves, sizeof(*r.entry)),
                     .load = pool_new(pool, paths->links + 1, sizeof(*r.load))};

    for (uint32_t i = 0; i < paths->hosts; i++) {
        uint32_t leaf = paths->leaf[along[i]];

        if (r.hosts[leaf] == 0) {
            r.first[leaf] =
                leaves > 0 ? r.first[r.leaf_at[leaves - 1]] + paths->on_leaf[r.leaf_at[leaves - 1]]
                           : 0;
            r.leaf_at[leaves++] = leaf;
        }
        kept[r.first[leaf] + r.hosts[leaf]++] = along[i];
    }
    search(&r);
    for (uint32_t place = 0; place < leaves; place++) {
        uint32_t leaf = r.leaf_at[place];

        for (uint32_t i = 0; i < r.hosts[leaf]; i++) {
            along[at++] = kept[r.first[leaf] + (r.entry[leaf] + i) % r.hosts[leaf]];
        }
    }
}
