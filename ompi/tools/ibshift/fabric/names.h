/*
 * Names of hosts for files that ibshift_order_load() reads: the node's description where it is one
 * host's alone, NAME/PORT where an adapter has several ports in the fabric, 0xPORTGUID where
 * several nodes have the same description.
 */
#ifndef IBSHIFT_FABRIC_NAMES_H
#define IBSHIFT_FABRIC_NAMES_H

#include <stdio.h>

#include "fabric/graph/fabric.h"

#define FABRIC_NAME_SIZE 600

struct fabric_names {
    const struct ibshift_fabric *fabric;
    struct ibshift_map64 node_of, shared; /* by hash of the description: a node; several nodes */
};

/* 0 or -ENOMEM. */
int fabric_names_open(const struct ibshift_fabric *f, struct fabric_names *names);
void fabric_names_close(struct fabric_names *names);
/* text, or where it lies in the fabric. */
const char *fabric_names_get(const struct fabric_names *names, uint32_t host, char *text,
                             size_t size);

#endif
