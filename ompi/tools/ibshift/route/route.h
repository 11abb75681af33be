/*
 * Routing engines: a fabric's graph goes in, forwarding tables come out.
 *
 * `ibshift route` copies the graph, gives LIDs to all ports that need one (route.c), lets one
 * engine fill the tables, verifies them (verify.h) and writes what OpenSM loads. An engine is
 * one function and one row of route.c; it knows nothing of files, options or proofs.
 */
#ifndef IBSHIFT_ROUTE_ROUTE_H
#define IBSHIFT_ROUTE_ROUTE_H

#include <stdio.h>

#include "fabric/graph/fabric.h"
#include "fabric/sl2vl.h"
#include "pool.h"

#define ROUTE_VLS_MOST 15 /* data VLs */

/*
 * What an engine works on and fills.
 *
 * fabric->lft is [switch][LID] -> port, all 0 at the start. 0 means "no entry", except at a
 * switch's own LID, which needs none. An engine fills the LIDs of hosts (all of 1 << lmc), and
 * those of switches without hosts.
 */
struct route {
    struct ibshift_fabric *fabric;
    struct pool pool; /* what lives as long as this */
    unsigned threads; /* for route_parallel() */
    unsigned vls;     /* data VLs that every port of the fabric has */

    /* The order of hosts whose shift the tables are made for, with IBSHIFT_NO_HOST for place
     * keepers, from the pool; NULL: the order of the source. */
    uint32_t *order;
    uint32_t order_count;

    uint32_t *job_of;            /* [host]: which job it has, from 1 on; 0: none; NULL: not known */
    uint32_t jobs, unknown_jobs; /* the others have nodes that the fabric lacks */
    double fullest_before, fullest; /* cable up, in messages, if each job calls once */

    /* Only of engines that need them (NULL: SL 0, VL 0): see route_lanes_new(). */
    uint8_t *sl; /* [switch * lft_stride + LID]: of packets from hosts of that switch */
    struct fabric_sl2vl lanes; /* SL -> VL of the outgoing link */
    unsigned vls_used;         /* 1 + highest VL */
};

/*
 * 0, or a negative errno with one line in err that says which node breaks which rule. -ENOTSUP: the
 * fabric is not what the engine needs (exit code 3). Nothing is written then.
 */
typedef int (*route_build_fn)(struct route *r, struct ibshift_error *err);

struct route_engine {
    const char *name;
    route_build_fn build;
    const char *needs; /* of the fabric, in a few words */
    const char *help;  /* what it does, one line */
};

extern const struct route_engine route_engines[]; /* ends with name NULL */
const struct route_engine *route_engine_find(const char *name);

/* lmc < 0: keep the LIDs of the source if all ports have one. -ENOTSUP: out of LIDs. */
int route_open(const struct ibshift_fabric *source, int lmc, struct route *r,
               struct ibshift_error *err);
void route_close(struct route *r);

/* LIDs of the host that has most. */
unsigned route_most_lids(const struct ibshift_fabric *f);

/* Nodes, cables and LIDs, with the same indices, but no cable of the nodes left out (NULL: none).
 */
int route_copy_graph(const struct ibshift_fabric *from, const bool *is_left_out,
                     struct ibshift_fabric *to, struct ibshift_error *err);

/* Arrays for SLs and for SL-to-VL tables, all 0; -ENOTSUP: the fabric has fewer than vls VLs. */
int route_lanes_new(struct route *r, unsigned vls, struct ibshift_error *err);

/*
 * work(context, first, end) on parts of 0 .. count - 1, in several threads; results must not
 * depend on the parts.
 */
void route_parallel(unsigned threads, uint32_t count,
                    void (*work)(void *context, uint32_t first, uint32_t end), void *context);

/*
 * After the engine, what it left empty: a switch with hosts is reached as its first host is, one
 * that no route passes over a neighbour. Engines for fabrics with other switches route to those
 * themselves (route_tree_switches()). Routers and aggregation nodes are reached as the hosts of
 * their switch are, or as the switch itself where it has none.
 */
void route_to_switches(struct route *r);

/* The switch behind a switch's port, by its number, or IBSHIFT_NO_SWITCH. */
static inline uint32_t route_next_switch(const struct ibshift_fabric *f, uint32_t sw, unsigned port)
{
    return ibshift_switch_behind(f, ibshift_node_port(f, f->switches[sw], port));
}

/* Next link of a packet to lid at switch sw, IBSHIFT_NO_PORT if none. */
static inline uint32_t route_next_link(const struct ibshift_fabric *f, uint32_t sw, unsigned lid)
{
    const struct ibshift_node *node = &f->nodes[f->switches[sw]];
    unsigned port = ibshift_lft_get(f, sw, lid);
    uint32_t link = node->first_port + port - 1;

    return port == 0 || port > node->port_count || f->ports[link].peer == IBSHIFT_NO_PORT
               ? IBSHIFT_NO_PORT
               : link;
}

/* ---- the engines ---- */
int route_ftree(struct route *r, struct ibshift_error *err);
int route_pgft(struct route *r, struct ibshift_error *err);
int route_qft(struct route *r, struct ibshift_error *err);
int route_ecube(struct route *r, struct ibshift_error *err);
int route_updn(struct route *r, struct ibshift_error *err);
int route_flexible(struct route *r, struct ibshift_error *err);

int cmd_route(int argc, char **argv);

#endif
