/* The engines, a row each: the command line, its help and the tests follow from it. And what they have in
 * common: the copy of the fabric that they fill, arrays for VLs, work in several threads, and routes
 * to switches, which most engines leave to be done at the end. */
#include "route/route.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct route_engine route_engines[] = {
    {"ftree", route_ftree, "a fat tree",
     "one destination after another, over the least used ports"},
    {"pgft", route_pgft, "a fat tree, cables may be missing",
     "closed form: shifts over its order are free of contention"},
    {"qft", route_qft, "a quasi fat tree, cables may be missing",
     "closed form for cross-connected levels, as clean"},
    {"ecube", route_ecube, "a torus, and 2 VLs",
     "dimension by dimension, with SLs and VLs against deadlock"},
    {"updn", route_updn, "any that is connected",
     "up, then down a depth-first spanning tree; one VL"},
    {"flexible", route_flexible, "any that is connected",
     "cycles broken turn by turn for short, even ways; one VL"},
    {NULL, NULL, NULL, NULL},
};

const struct route_engine *route_engine_find(const char *name)
{
    const struct route_engine *e = route_engines;

    while (e->name != NULL && strcmp(e->name, name) != 0) {
        e++;
    }
    return e->name != NULL ? e : NULL;
}

static int copy_nodes(const struct ibshift_fabric *from, struct ibshift_fabric *to,
                      struct ibshift_error *err)
{
    for (uint32_t n = 0; n < from->node_count; n++) {
        const struct ibshift_node *node = &from->nodes[n];
        int64_t rc = ibshift_fabric_add_node(to, node->kind, node->guid, ibshift_node_name(from, n),
                                             node->port_count, err);

        if (rc < 0) {
            return (int)rc;
        }
        to->nodes[n].lid = node->lid;
        to->nodes[n].lmc = node->lmc;
        for (unsigned i = 0; i < node->port_count; i++) {
            uint32_t port = node->first_port + i;
            uint64_t guid = from->ports[port].guid;

            if (guid != 0 && ibshift_fabric_set_port_guid(to, port, guid) != 0) {
                return ibshift_fail(err, -EINVAL, "port %u of '%s' has another port's GUID", i + 1,
                                    ibshift_node_name(from, n));
            }
            if (from->ports[port].peer != IBSHIFT_NO_PORT) {
                to->ports[port].lid = from->ports[port].lid;
                to->ports[port].lmc = from->ports[port].lmc;
            }
        }
    }
    return 0;
}

int route_copy_graph(const struct ibshift_fabric *from, const bool *is_left_out,
                     struct ibshift_fabric *to, struct ibshift_error *err)
{
    int rc = copy_nodes(from, to, err);

    for (uint32_t p = 0; rc == 0 && p < from->port_count; p++) {
        uint32_t peer = from->ports[p].peer;

        if (peer != IBSHIFT_NO_PORT && peer > p &&
            (is_left_out == NULL ||
             (!is_left_out[from->ports[p].node] && !is_left_out[from->ports[peer].node]))) {
            rc = ibshift_fabric_add_link(to, p, peer, from->ports[p].rate, err);
        }
    }
    return rc == 0 ? ibshift_fabric_finish(to, err) : rc;
}

/* Each cabled port of a host, router or aggregation node has a LID of its own. */
static bool wants_lid(const struct ibshift_fabric *f, uint32_t port)
{
    return f->ports[port].peer != IBSHIFT_NO_PORT &&
           !ibshift_node_is_switch(f, f->ports[port].node);
}

/* All that need a LID have one, all hosts with this LMC (-1: with the same). */
static bool has_lids(const struct ibshift_fabric *f, int lmc)
{
    for (uint32_t n = 0; n < f->node_count; n++) {
        if (ibshift_node_is_switch(f, n) && f->nodes[n].lid == 0 && ibshift_node_has_cable(f, n)) {
            return false;
        }
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];

        if (wants_lid(f, p) && port->lid == 0) {
            return false;
        }
        if (wants_lid(f, p) && f->nodes[port->node].kind == IBSHIFT_NODE_HCA) {
            lmc = lmc < 0 ? port->lmc : lmc;
            if (port->lmc != lmc) {
                return false;
            }
        }
    }
    return true;
}

static void forget_lids(struct ibshift_fabric *f)
{
    for (uint32_t n = 0; n < f->node_count; n++) {
        f->nodes[n].lid = f->nodes[n].lmc = 0;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        f->ports[p].lid = f->ports[p].lmc = 0;
    }
}

/* The LIDs of all switches, or of all cabled ports of other nodes of the kind; *lid is the next. */
static int number_kind(struct ibshift_fabric *f, enum ibshift_node_kind kind, unsigned lmc,
                       unsigned *lid, struct ibshift_error *err)
{
    unsigned mask = kind == IBSHIFT_NODE_SWITCH ? 0 : (1u << lmc) - 1;
    int rc = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        unsigned first = kind == IBSHIFT_NODE_SWITCH ? 0 : 1;
        unsigned last = kind == IBSHIFT_NODE_SWITCH ? 0 : f->nodes[n].port_count;

        for (unsigned p = first; f->nodes[n].kind == kind && rc == 0 && p <= last; p++) {
            if (p > 0 && !wants_lid(f, ibshift_node_port(f, n, p))) {
                continue;
            }
            *lid = (*lid + mask) & ~mask; /* aligned for the LMC */
            if (*lid + mask > IBSHIFT_LID_MAX) {
                return ibshift_fail(err, -ENOTSUP,
                                    "out of LIDs: %u hosts of %u LIDs and %u switches want more "
                                    "than the %u of a subnet; take a smaller LMC",
                                    f->host_count, 1u << lmc, f->switch_count, IBSHIFT_LID_MAX);
            }
            rc = ibshift_fabric_set_lid(f, n, p, *lid, p == 0 ? 0 : lmc, err);
            *lid += mask + 1;
        }
    }
    return rc;
}

/* Hosts first, then switches, then routers and aggregation nodes; OpenSM's LMC is for all but the
 * switches. */
static int set_lids(struct ibshift_fabric *f, int lmc, struct ibshift_error *err)
{
    static const enum ibshift_node_kind kinds[] = {IBSHIFT_NODE_HCA, IBSHIFT_NODE_SWITCH,
                                                   IBSHIFT_NODE_OTHER};
    unsigned lid = 1;
    int rc = 0;

    if (has_lids(f, lmc)) {
        return 0;
    }
    forget_lids(f);
    for (size_t i = 0; rc == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        rc = number_kind(f, kinds[i], lmc > 0 ? (unsigned)lmc : 0, &lid, err);
    }
    return rc;
}

static int prepare(const struct ibshift_fabric *source, int lmc, struct ibshift_fabric *f,
                   struct ibshift_error *err)
{
    int rc = route_copy_graph(source, NULL, f, err);

    if (rc == 0 && f->host_count == 0) {
        rc = ibshift_fail(err, -ENOTSUP, "the fabric has no hosts: nothing to route to");
    }
    rc = rc == 0 ? set_lids(f, lmc, err) : rc;
    rc = rc == 0 ? ibshift_fabric_index(f, err) : rc;
    if (rc == 0) {
        f->lft_stride = ibshift_fabric_highest_lid(f) + 1;
        f->lft = calloc((size_t)f->switch_count + 1, f->lft_stride);
        rc = f->lft != NULL ? 0
                            : ibshift_fail(err, -ENOMEM, "no memory for the tables of %u switches",
                                           f->switch_count);
    }
    return rc;
}

int route_open(const struct ibshift_fabric *source, int lmc, struct route *r,
               struct ibshift_error *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int rc;

    *r = (struct route){.fabric = ibshift_fabric_new(),
                        .threads = cores > 0 ? (unsigned)cores : 1,
                        .vls = 8,
                        .vls_used = 1};
    rc = r->fabric == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                           : prepare(source, lmc, r->fabric, err);
    if (rc != 0) {
        route_close(r);
    }
    return rc;
}

void route_close(struct route *r)
{
    ibshift_fabric_free(r->fabric);
    fabric_sl2vl_free(&r->lanes);
    pool_free(&r->pool);
    memset(r, 0, sizeof(*r));
}

unsigned route_most_lids(const struct ibshift_fabric *f)
{
    unsigned most = 1;

    for (uint32_t h = 0; h < f->host_count; h++) {
        most = ibshift_host_lid_count(f, h) > most ? ibshift_host_lid_count(f, h) : most;
    }
    return most;
}

int route_lanes_new(struct route *r, unsigned vls, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;

    if (vls > r->vls) {
        return ibshift_fail(err, -ENOTSUP, "this needs %u VLs, the fabric has %u (--vls)", vls,
                            r->vls);
    }
    r->sl = pool_new(&r->pool, f->switch_count, f->lft_stride);
    r->vls_used = vls;
    fabric_sl2vl_new(f, &r->lanes);
    return 0;
}

#define PARTS_A_THREAD 16
#define THREADS_MOST   64

struct crew {
    uint32_t count, part;
    void (*work)(void *context, uint32_t first, uint32_t end);
    void *context;
    atomic_uint next; /* part to take */
};

static void *take_parts(void *argument)
{
    struct crew *crew = argument;
    uint64_t first;

    while ((first = (uint64_t)atomic_fetch_add(&crew->next, 1) * crew->part) < crew->count) {
        uint64_t end = first + crew->part;

        crew->work(crew->context, (uint32_t)first, end < crew->count ? (uint32_t)end : crew->count);
    }
    return NULL;
}

/* What gets no thread is done by this one. */
void route_parallel(unsigned threads, uint32_t count,
                    void (*work)(void *context, uint32_t first, uint32_t end), void *context)
{
    pthread_t thread[THREADS_MOST];
    unsigned started = 0;
    struct crew crew = {.count = count, .work = work, .context = context};

    threads = threads > THREADS_MOST ? THREADS_MOST : threads > 0 ? threads : 1;
    crew.part = count / (threads * PARTS_A_THREAD) + 1;
    while (started + 1 < threads &&
           pthread_create(&thread[started], NULL, take_parts, &crew) == 0) {
        started++;
    }
    take_parts(&crew);
    while (started > 0) {
        pthread_join(thread[--started], NULL);
    }
}

struct first_hosts {
    struct route *r;
    uint32_t *host;   /* [switch]: + 1, 0 = none */
    uint32_t *hosts;  /* [switch]: how many */
    uint32_t *others; /* [switch]: LIDs of its routers and aggregation nodes that have their ways */
};

/* At a switch a LID leads where another one does, on the same service level. */
static void copy_entry(struct route *r, uint32_t s, unsigned lid, unsigned like)
{
    size_t row = (size_t)s * r->fabric->lft_stride;

    r->fabric->lft[row + lid] = r->fabric->lft[row + like];
    if (r->sl != NULL) {
        r->sl[row + lid] = r->sl[row + like];
    }
}

static void copy_columns(void *context, uint32_t first, uint32_t end)
{
    const struct first_hosts *c = context;
    const struct ibshift_fabric *f = c->r->fabric;

    for (uint32_t s = first; s < end; s++) {
        for (uint32_t target = 0; target < f->switch_count; target++) {
            unsigned lid = f->nodes[f->switches[target]].lid;

            if (c->host[target] != 0 && target != s && lid != 0 &&
                ibshift_lft_get(f, s, lid) == 0) {
                copy_entry(c->r, s, lid, ibshift_host_lid(f, c->host[target] - 1));
            }
        }
    }
}

static bool is_empty(const struct ibshift_fabric *f, uint32_t s)
{
    const uint8_t *row = f->lft + (size_t)s * f->lft_stride;

    for (uint32_t lid = 0; lid < f->lft_stride; lid++) {
        if (row[lid] != 0) {
            return false;
        }
    }
    return true;
}

/* Such a switch passes nothing on, so that no dependency between links comes of it. */
static void hang_on(struct route *r, uint32_t s, unsigned port)
{
    struct ibshift_fabric *f = r->fabric;
    uint32_t peer = f->ports[ibshift_node_port(f, f->switches[s], port)].peer;
    uint32_t other = f->nodes[f->ports[peer].node].switch_index;
    unsigned lid = f->nodes[f->switches[s]].lid, its = f->nodes[f->ports[peer].node].lid;

    for (uint32_t i = 1; i < f->lft_stride; i++) {
        if (i != lid && (i == its || ibshift_lft_get(f, other, i) != 0)) {
            ibshift_lft_set(f, s, i, port);
        }
    }
    for (uint32_t i = 0; lid != 0 && its != 0 && i < f->switch_count; i++) {
        copy_entry(r, i, lid, its);
    }
    ibshift_lft_set(f, s, lid, 0);
    ibshift_lft_set(f, other, lid, f->ports[peer].number);
}

static void hang_on_neighbours(struct route *r)
{
    const struct ibshift_fabric *f = r->fabric;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        unsigned ports = f->nodes[f->switches[s]].port_count;

        for (unsigned p = 1; is_empty(f, s) && p <= ports; p++) {
            uint32_t next = route_next_switch(f, s, p);

            if (next != IBSHIFT_NO_SWITCH && !is_empty(f, next)) {
                hang_on(r, s, p);
            }
        }
    }
}

/* A LID that leads to the switch: its nth host's, by turns, or its own where it has no hosts. */
static unsigned lid_behind(const struct ibshift_fabric *f, uint32_t node, uint32_t nth,
                           uint32_t hosts)
{
    const struct ibshift_node *sw = &f->nodes[node];

    for (uint32_t p = sw->first_port; hosts > 0 && p < sw->first_port + sw->port_count; p++) {
        uint32_t peer = f->ports[p].peer;

        if (peer != IBSHIFT_NO_PORT && f->nodes[f->ports[peer].node].kind == IBSHIFT_NODE_HCA &&
            nth-- == 0) {
            return f->ports[peer].lid;
        }
    }
    return sw->lid;
}

/* Routers and aggregation nodes are no part of the order: they are reached as the hosts of their
 * switch are, so that their routes add no dependency that the hosts' have not. */
static void route_to_others(struct first_hosts *c)
{
    struct ibshift_fabric *f = c->r->fabric;

    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];
        uint32_t sw = ibshift_switch_behind(f, p);

        if (f->nodes[port->node].kind != IBSHIFT_NODE_OTHER || port->lid == 0 ||
            sw == IBSHIFT_NO_SWITCH) {
            continue;
        }
        for (unsigned i = 0; i < 1u << port->lmc; i++) {
            uint32_t nth = c->hosts[sw] > 0 ? c->others[sw]++ % c->hosts[sw] : 0;
            unsigned like = lid_behind(f, f->switches[sw], nth, c->hosts[sw]);

            for (uint32_t s = 0; s < f->switch_count; s++) {
                copy_entry(c->r, s, port->lid + i, like);
            }
            ibshift_lft_set(f, sw, port->lid + i, f->ports[port->peer].number);
        }
    }
}

void route_to_switches(struct route *r)
{
    const struct ibshift_fabric *f = r->fabric;
    struct pool pool = {NULL};
    struct first_hosts c = {.r = r,
                            .host = pool_new(&pool, f->switch_count, sizeof(*c.host)),
                            .hosts = pool_new(&pool, f->switch_count, sizeof(*c.hosts)),
                            .others = pool_new(&pool, f->switch_count, sizeof(*c.others))};

    for (uint32_t h = f->host_count; h-- > 0;) {
        uint32_t sw = ibshift_switch_behind(f, f->hosts[h]);

        if (sw != IBSHIFT_NO_SWITCH) {
            c.host[sw] = h + 1;
            c.hosts[sw]++;
        }
    }
    route_parallel(r->threads, f->switch_count, copy_columns, &c);
    hang_on_neighbours(r);
    route_to_others(&c);
    pool_free(&pool);
}
