/*
 * The fabric as a graph with its forwarding tables.
 *
 * Nodes (HCAs, switches) own a run of ports in one array; a directed link is named by the index of
 * the port that sends into it, so port_count is also the number of directed links (ports without a
 * peer are links that carry nothing). A host is an HCA port with a cable: hosts[h] is its port. A
 * table entry is one byte, the port that a switch sends a destination LID out of; 0 says that it
 * has none.
 *
 * All arrays are flat, so that the compiled form is used where it is mapped. Built by the functions
 * below, by the readers (read.h), by the generator (synth.h) or mapped (compiled.h); read-only and
 * safe to share afterwards.
 */
#ifndef IBSHIFT_FABRIC_GRAPH_FABRIC_H
#define IBSHIFT_FABRIC_GRAPH_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fabric/graph/error.h"
#include "fabric/graph/map64.h"

#define IBSHIFT_LID_MAX         0xBFFFu /* the highest unicast LID */
#define IBSHIFT_PORT_MAX        254
#define IBSHIFT_LMC_MAX         7
#define IBSHIFT_SL_MAX          15 /* service levels */
#define IBSHIFT_NO_PORT         UINT32_MAX
#define IBSHIFT_NO_NODE         UINT32_MAX
#define IBSHIFT_NO_HOST         UINT32_MAX
#define IBSHIFT_NODES_MAX       (2 * (IBSHIFT_LID_MAX + 1)) /* every port of a subnet needs a LID */
#define IBSHIFT_GRAPH_PORTS_MAX 4000000u
#define IBSHIFT_NO_SWITCH       UINT32_MAX

enum ibshift_node_kind {
    IBSHIFT_NODE_HCA,
    IBSHIFT_NODE_SWITCH,
    IBSHIFT_NODE_OTHER, /* routers and the switches' own reduction engines: linked, but nobody's
                           rank */
};

struct ibshift_node {
    uint64_t guid;
    uint32_t name;         /* offset into names: the node description */
    uint32_t first_port;   /* index of port 1 */
    uint32_t switch_index; /* row of the tables, or IBSHIFT_NO_SWITCH */
    uint16_t lid;          /* a switch's own (port 0); 0 = not known */
    uint8_t lmc;
    uint8_t kind;
    uint8_t port_count;
    uint8_t unused[7];
};

#define IBSHIFT_RATE_MOST 0xffffffu

/* What a cable carries. Compared and priced by its data rate; the rest is its name. */
struct ibshift_rate {
    uint32_t mbps : 24;      /* of data, not of bits on the wire; 0 = not known */
    uint32_t lanes : 4;      /* "4" of 4xEDR */
    uint32_t generation : 4; /* a number of rate.c, 0 = no name fits */
};

#define IBSHIFT_NO_RATE ((struct ibshift_rate){.mbps = 0})

struct ibshift_port {
    uint64_t guid; /* 0 at switches */
    uint32_t node;
    uint32_t peer; /* port at the other end, or IBSHIFT_NO_PORT */
    struct ibshift_rate rate;
    uint16_t lid; /* base LID of an HCA's port; 0 = not known, and at switches */
    uint8_t lmc;
    uint8_t number; /* 1.. */
};

_Static_assert(sizeof(struct ibshift_node) == 32, "part of the compiled form");
_Static_assert(sizeof(struct ibshift_rate) == 4, "part of the compiled form");
_Static_assert(sizeof(struct ibshift_port) == 24, "part of the compiled form");

/* Who published the file that the fabric is from, and when; all zero: nobody did. */
struct ibshift_imprint {
    uint64_t subnet_prefix; /* 0: not known */
    uint64_t sm_guid;       /* port of the subnet manager; 0: not known */
    uint64_t time, expires; /* seconds since 1970; expires 0: never */
    uint32_t activity;      /* the subnet manager's own count of what it did; 0: not known */
    uint16_t sm_lid;        /* 0: not known */
    uint16_t unused;
};

_Static_assert(sizeof(struct ibshift_imprint) == 40, "part of the compiled form");

struct ibshift_fabric {
    struct ibshift_node *nodes;
    struct ibshift_port *ports;
    char *names;
    uint32_t *hosts;    /* port of host h, in the order of the source */
    uint32_t *switches; /* node of switch s */
    uint32_t *lid_port; /* [IBSHIFT_LID_MAX + 1]: HCA port that owns the LID, or IBSHIFT_NO_PORT */
    uint8_t *lft;       /* [switch_count][lft_stride], or NULL: no tables */
    uint32_t node_count, port_count, host_count, switch_count, names_size;
    const uint32_t *order; /* the routing order that a compiled file carries, with IBSHIFT_NO_HOST
                              for place keepers; or NULL */
    uint32_t order_count;
    uint32_t lft_stride; /* highest LID + 1 */
    bool is_adaptive;    /* switches choose ports by load: the tables are no routes */
    bool has_loop;       /* with one service level for all, packets may wait in a circle */
    uint8_t *sl;         /* [sl_rows][lft_stride]: service level of packets to a host's LID, or
                            NULL: not known */
    uint32_t *sl_row;    /* [host_count]: the row that the host's packets have */
    uint32_t sl_rows;
    struct ibshift_imprint imprint;
    uint64_t guid_sum; /* identity of the graph, tables_sum that of the tables */
    uint64_t tables_sum;

    struct ibshift_map64 by_guid; /* node GUIDs and port GUIDs -> node */
    void *image; /* of a compiled file: the arrays above lie in it and are read-only */
    size_t image_size;
};

/* ---- building: 0 or an index, or a negative errno with the reason in err ---- */

struct ibshift_fabric *ibshift_fabric_new(void);
void ibshift_fabric_free(struct ibshift_fabric *f);
/* Returns the node's index. -EEXIST: the GUID is there already. */
int64_t ibshift_fabric_add_node(struct ibshift_fabric *f, enum ibshift_node_kind kind,
                                uint64_t guid, const char *name, unsigned ports,
                                struct ibshift_error *err);
int ibshift_fabric_add_link(struct ibshift_fabric *f, uint32_t port_a, uint32_t port_b,
                            struct ibshift_rate rate, struct ibshift_error *err);
/* port 0 of a switch or a port of an HCA. */
int ibshift_fabric_set_lid(struct ibshift_fabric *f, uint32_t node, unsigned port, unsigned lid,
                           unsigned lmc, struct ibshift_error *err);
int ibshift_fabric_set_port_guid(struct ibshift_fabric *f, uint32_t port, uint64_t guid);
/* After the last node and link: hosts, switches, LID index. May be called again after changes of
 * LIDs. */
int ibshift_fabric_finish(struct ibshift_fabric *f, struct ibshift_error *err);
/* The LID index alone, after a check that no LID has two owners. */
int ibshift_fabric_index(struct ibshift_fabric *f, struct ibshift_error *err);
/* Empty tables for all switches, LIDs up to IBSHIFT_LID_MAX (untouched pages cost nothing). */
int ibshift_fabric_tables_new(struct ibshift_fabric *f, struct ibshift_error *err);
uint32_t ibshift_fabric_highest_lid(const struct ibshift_fabric *f);
/* Cuts the tables to the highest LID in use and computes the checksums. */
void ibshift_fabric_tables_finish(struct ibshift_fabric *f);

/* ---- reading ---- */

static inline const char *ibshift_node_name(const struct ibshift_fabric *f, uint32_t node)
{
    return f->names + f->nodes[node].name;
}

/* SHARP's reduction engine in a switch looks like an adapter; only its description tells. */
static inline bool ibshift_is_aggregation_node(const char *description)
{
    return strstr(description, "Aggregation Node") != NULL;
}

static inline bool ibshift_node_is_switch(const struct ibshift_fabric *f, uint32_t node)
{
    return f->nodes[node].kind == IBSHIFT_NODE_SWITCH;
}

/* Index of a node's port by its number 1..port_count. */
static inline uint32_t ibshift_node_port(const struct ibshift_fabric *f, uint32_t node,
                                         unsigned number)
{
    return f->nodes[node].first_port + number - 1;
}

/* Node at the other end of the port's cable, or IBSHIFT_NO_NODE. */
static inline uint32_t ibshift_port_neighbour(const struct ibshift_fabric *f, uint32_t port)
{
    uint32_t peer = f->ports[port].peer;

    return peer == IBSHIFT_NO_PORT ? IBSHIFT_NO_NODE : f->ports[peer].node;
}

/* The switch behind a port by its index, or IBSHIFT_NO_SWITCH. */
static inline uint32_t ibshift_switch_behind(const struct ibshift_fabric *f, uint32_t port)
{
    uint32_t node = ibshift_port_neighbour(f, port);

    return node == IBSHIFT_NO_NODE ? IBSHIFT_NO_SWITCH : f->nodes[node].switch_index;
}

static inline bool ibshift_node_has_cable(const struct ibshift_fabric *f, uint32_t node)
{
    const struct ibshift_port *port = f->ports + f->nodes[node].first_port;

    for (unsigned i = 0; i < f->nodes[node].port_count; i++) {
        if (port[i].peer != IBSHIFT_NO_PORT) {
            return true;
        }
    }
    return false;
}

/* How many adapters the node is cabled with. */
static inline unsigned ibshift_node_hosts(const struct ibshift_fabric *f, uint32_t node)
{
    unsigned hosts = 0;

    for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
        uint32_t next = ibshift_port_neighbour(f, ibshift_node_port(f, node, p));

        hosts += next != IBSHIFT_NO_NODE && f->nodes[next].kind == IBSHIFT_NODE_HCA;
    }
    return hosts;
}

static inline unsigned ibshift_host_lid(const struct ibshift_fabric *f, uint32_t host)
{
    return f->ports[f->hosts[host]].lid;
}

static inline unsigned ibshift_host_lid_count(const struct ibshift_fabric *f, uint32_t host)
{
    return 1u << f->ports[f->hosts[host]].lmc;
}

/* Node description of the host's HCA. */
static inline const char *ibshift_host_name(const struct ibshift_fabric *f, uint32_t host)
{
    return ibshift_node_name(f, f->ports[f->hosts[host]].node);
}

/* Table entry; 0 = none. lid must be below lft_stride. */
static inline unsigned ibshift_lft_get(const struct ibshift_fabric *f, uint32_t sw, unsigned lid)
{
    return f->lft[(size_t)sw * f->lft_stride + lid];
}

/* Service level of what a host sends to a LID of another; 0 where none is known. */
static inline unsigned ibshift_fabric_sl(const struct ibshift_fabric *f, uint32_t host,
                                         unsigned lid)
{
    return f->sl == NULL || lid >= f->lft_stride
               ? 0
               : f->sl[(size_t)f->sl_row[host] * f->lft_stride + lid];
}

static inline void ibshift_lft_set(struct ibshift_fabric *f, uint32_t sw, unsigned lid,
                                   unsigned port)
{
    f->lft[(size_t)sw * f->lft_stride + lid] = (uint8_t)port;
}

/* Node by node GUID or port GUID; IBSHIFT_NO_NODE. */
uint32_t ibshift_fabric_find_guid(const struct ibshift_fabric *f, uint64_t guid);
/* Host by "0xPORTGUID", by its full description, or by the description's first word; both also with
 * "/PORT" behind them. -ENOENT, -EEXIST: several. */
int64_t ibshift_fabric_find_host(const struct ibshift_fabric *f, const char *name);
/* Host that owns the LID, IBSHIFT_NO_HOST. */
uint32_t ibshift_fabric_host_of_lid(const struct ibshift_fabric *f, unsigned lid);
/* "h00003 HCA-1 port 1" or "s2-00004 port 7 -> s1-00001 port 20" for a directed link; "NAME (LID n)
 * port 7" where several nodes have the name. */
void ibshift_link_name(const struct ibshift_fabric *f, uint32_t link, char *text, size_t size);

#endif
