/*
 * What hosts are called. In files that ibshift_order_load() reads: the node's description where it is one
 * host's alone, NAME/PORT where an adapter has several ports in the fabric, 0xPORTGUID where several
 * nodes have the same description. By batch systems: the first word of the adapter's description.
 */
#ifndef IBSHIFT_FABRIC_NAMES_H
#define IBSHIFT_FABRIC_NAMES_H

#include <stdio.h>

#include "fabric/graph/fabric.h"
#include "pool.h"

enum { FABRIC_NAME_SIZE = 600, FABRIC_NODE_NAME = 80 };

struct fabric_names {
    const struct ibshift_fabric *fabric;
    struct pool pool;
    bool *is_shared; /* [node] */
};

/* pool_free() of its pool ends it. */
void fabric_names_open(const struct ibshift_fabric *f, struct fabric_names *names);
/* text, or where it lies in the fabric. */
const char *fabric_names_get(const struct fabric_names *names, uint32_t host, char *text,
                             size_t size);

/* An order as opensm-ftree-ca-order.dump has it, IBSHIFT_NO_HOST as DUMMY. */
void fabric_order_write(const struct ibshift_fabric *f, const uint32_t *order, uint32_t count,
                        FILE *out);

/* The first host of a node of a batch system: a node may have several adapters. */
struct fabric_node {
    char name[FABRIC_NODE_NAME];
    uint32_t host;
};

struct fabric_nodes {
    struct fabric_node *at; /* by name, from the pool */
    uint32_t count;
};

/* 0; -ENOENT: no host has a name. */
int fabric_nodes_find(const struct ibshift_fabric *f, struct pool *pool, struct fabric_nodes *nodes,
                      struct ibshift_error *err);

/* [host]: the first host of the same node, by its name, or by its adapter where that has none; the pool's. */
uint32_t *fabric_nodes_of(const struct ibshift_fabric *f, struct pool *pool);

/* Its host, or IBSHIFT_NO_HOST. */
uint32_t fabric_nodes_host(const struct fabric_nodes *nodes, const char *name);

#endif
