/* Reading a fabric from its own switches, through libibnetdisc and libibumad. */
#ifndef IBSHIFT_FABRIC_LIVE_H
#define IBSHIFT_FABRIC_LIVE_H

#include "fabric/facts.h"
#include "fabric/graph/fabric.h"

struct fabric_live {
    const char *device; /* NULL: the first with an active port */
    uint32_t port;      /* 0: the first active one */
    bool has_progress;  /* a bar on stderr */
};

/* Nodes, cables, LIDs and forwarding tables. 0 or a negative errno with the reason. */
int fabric_live_read(const struct fabric_live *live, struct ibshift_fabric **fabric,
                     struct ibshift_error *err);

/* What this machine's port and the subnet manager say of the subnet; what is not answered stays
 * 0. */
void fabric_live_facts(const struct fabric_live *live, struct fabric_facts *facts);

#endif
