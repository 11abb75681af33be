/* Hosts by the names of their nodes, as batch systems know them. */
#ifndef IBSHIFT_FABRIC_NODES_H
#define IBSHIFT_FABRIC_NODES_H

#include "fabric/graph/fabric.h"

enum { FABRIC_NODE_NAME = 80 };

/* The first host of a node: a node may have several adapters. */
struct fabric_node {
    char name[FABRIC_NODE_NAME];
    uint32_t host;
};

struct fabric_nodes {
    struct fabric_node *at; /* by name */
    uint32_t count;
    uint32_t unnamed; /* hosts whose adapter has no name of a node */
};

/* 0; -ENOENT: no host has a name; -ENOMEM. */
int fabric_nodes_open(const struct ibshift_fabric *f, struct fabric_nodes *nodes,
                      struct ibshift_error *err);
void fabric_nodes_close(struct fabric_nodes *nodes);
/* The host, or IBSHIFT_NO_HOST. */
uint32_t fabric_nodes_find(const struct fabric_nodes *nodes, const char *name);

#endif
