/*
 * Closed forms for the jobs that run.
 *
 * In a closed form each destination has the cables of one way down to itself, so that those carry what
 * its own cable carries, whatever else runs. The same way decides which cables lead up to it: where a
 * job's hosts have like ways, what its ranks send up comes together on few cables, and jobs on one leaf
 * share these. Which of the ways of a switch belongs to which of the hosts below it is free, level by
 * level: two hosts change theirs as long as that evens out what an all-to-all of each job puts on the
 * cables that lead up. Fourth powers are summed, because the fullest cable decides.
 *
 * Hosts of a leaf change their places with their ways: shifts over two levels stay clean. Above, shifts
 * of all hosts do not.
 */
#include <stdlib.h>

#include "route/closed.h"

enum { SWEEPS_MOST = 50 };

enum {
    KEY_BITS = 20,
    KEY_MASK = (1 << KEY_BITS) - 1
}; /* hosts and switches have LIDs: below 2^16 */

struct part { /* of a job */
    uint32_t leaf, hosts;
};

struct deal {
    struct route_closed *c;
    struct route_tree *t;
    uint64_t *keys; /* hosts on leaves, by what is above KEY_BITS */
    uint32_t count;
    struct part *part;
    uint32_t *first; /* [job] -> part; job 0 has none */
    double *load;    /* [port]: messages, if each job calls once */
    double sum;      /* of their fourth powers */
};

static struct route_aim *aim_of(const struct deal *d, uint32_t host)
{
    return &d->c->aims[ibshift_host_lid(d->t->f, host)];
}

/* The switch behind an up port, or IBSHIFT_NO_SWITCH: no cable, and the engine finds a way around. */
static uint32_t climb(const struct deal *d, uint32_t s, unsigned up, uint32_t *link)
{
    const struct route_tree *t = d->t;
    unsigned port = t->up[(size_t)s * t->up_stride + up];

    if (port == 0) {
        return IBSHIFT_NO_SWITCH;
    }
    *link = ibshift_node_port(t->f, t->f->switches[s], port);
    return route_next_switch(t->f, s, port);
}

static double square(double x)
{
    return x * x;
}

/* Messages to a host from all leaves of its job, on their ways up. */
static void add(struct deal *d, uint32_t host, double sign)
{
    const struct route_tree *t = d->t;
    const struct route_aim *aim = aim_of(d, host);
    uint32_t job = d->c->r->job_of[host], link = 0;

    for (uint32_t i = d->first[job]; i < d->first[job + 1]; i++) {
        double flows = sign * d->part[i].hosts;
        uint32_t s = d->part[i].leaf;

        for (unsigned l = 1; l < t->h && t->shape.down[l][aim->leaf] != t->shape.down[l][s]; l++) {
            s = climb(d, s, aim->up[l], &link);
            if (s == IBSHIFT_NO_SWITCH) {
                break;
            }
            d->sum -= square(square(d->load[link]));
            d->load[link] += flows;
            d->sum += square(square(d->load[link]));
        }
    }
}

static void swap_up(struct route_aim *a, struct route_aim *b, unsigned from, unsigned end)
{
    for (unsigned l = from; l < end; l++) {
        uint16_t up = a->up[l];

        a->up[l] = b->up[l];
        b->up[l] = up;
    }
}

/* Both have each other's way from a level on, and below it as before. Above the leaf to their first LIDs
 * alone: on the ways to others the two part before. */
static void swap(struct deal *d, uint32_t a, uint32_t b, unsigned level)
{
    const struct ibshift_fabric *f = d->t->f;
    unsigned lids = level == 1 ? ibshift_host_lid_count(f, a) : 1;
    unsigned others = ibshift_host_lid_count(f, b);
    uint32_t place = d->t->place[a];

    add(d, a, -1);
    add(d, b, -1);
    for (unsigned i = 0; i < lids && i < others; i++) {
        swap_up(aim_of(d, a) + i, aim_of(d, b) + i, level, d->t->h);
    }
    if (level == 1) {
        d->t->place[a] = d->t->place[b];
        d->t->place[b] = place;
    }
    add(d, a, 1);
    add(d, b, 1);
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Level 0: hosts by job and leaf; else by the switch of the level that leads on to them. */
static void list_hosts(struct deal *d, unsigned level)
{
    uint32_t link;

    d->count = 0;
    for (uint32_t h = 0; h < d->t->f->host_count; h++) {
        uint64_t s = aim_of(d, h)->leaf, job = level == 0 ? d->c->r->job_of[h] : 0;

        for (unsigned l = 1; l < level && s != IBSHIFT_NO_SWITCH; l++) {
            s = climb(d, (uint32_t)s, aim_of(d, h)->up[l], &link);
        }
        if (d->t->place[h] != ROUTE_NO_PLACE && s != IBSHIFT_NO_SWITCH) {
            d->keys[d->count++] = (job << KEY_BITS | s) << KEY_BITS | h;
        }
    }
    qsort(d->keys, d->count, sizeof(*d->keys), by_key);
}

static void find_parts(struct deal *d)
{
    uint64_t last = 0;
    uint32_t parts = 0;

    list_hosts(d, 0);
    for (uint32_t i = 0; i < d->count; i++) {
        uint64_t part = d->keys[i] >> KEY_BITS, job = part >> KEY_BITS;

        if (job > 0 && part != last) {
            d->part[parts++].leaf = part & KEY_MASK;
            d->first[job + 1] = parts;
        }
        if (job > 0) {
            d->part[parts - 1].hosts++;
        }
        last = part;
    }
    for (uint32_t j = 1; j <= d->c->r->jobs; j++) { /* a job may be empty */
        d->first[j + 1] = d->first[j + 1] > d->first[j] ? d->first[j + 1] : d->first[j];
    }
}

static double fullest(const struct deal *d)
{
    double most = 0;

    for (uint32_t i = 0; i < d->t->f->port_count; i++) {
        most = d->load[i] > most ? d->load[i] : most;
    }
    return most;
}

/* Did any two of a switch change their ways from there on? */
static bool sweep(struct deal *d, unsigned level)
{
    bool changed = false;

    for (uint32_t i = 0; i < d->count; i++) {
        for (uint32_t k = i + 1; k < d->count && d->keys[k] >> KEY_BITS == d->keys[i] >> KEY_BITS;
             k++) {
            uint32_t a = d->keys[i] & KEY_MASK, b = d->keys[k] & KEY_MASK;
            double before = d->sum;

            if (level == 1 && d->c->r->job_of[a] == d->c->r->job_of[b]) {
                continue;
            }
            swap(d, a, b, level);
            if (d->sum < before - 0.5) {
                changed = true;
            } else {
                swap(d, a, b, level);
                d->sum = before;
            }
        }
    }
    return changed;
}

void route_deal_ways(struct route_closed *c, struct route_tree *t)
{
    const struct ibshift_fabric *f = t->f;
    struct pool pool = {NULL};
    struct deal d = {.c = c,
                     .t = t,
                     .keys = pool_new(&pool, f->host_count, sizeof(*d.keys)),
                     .part = pool_new(&pool, f->host_count, sizeof(*d.part)),
                     .first = pool_new(&pool, (size_t)c->r->jobs + 2, sizeof(*d.first)),
                     .load = pool_new(&pool, f->port_count, sizeof(*d.load))};
    bool changed = true;

    find_parts(&d);
    for (uint32_t i = 0; i < d.count; i++) {
        add(&d, d.keys[i] & KEY_MASK, 1);
    }
    c->r->fullest_before = fullest(&d);
    for (int i = 0; i < SWEEPS_MOST && changed; i++) {
        changed = false;
        for (unsigned l = 1; l < t->h; l++) {
            list_hosts(&d, l);
            changed |= sweep(&d, l);
        }
    }
    c->r->fullest = fullest(&d);
    pool_free(&pool);
}
