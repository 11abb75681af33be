/* Reading a fabric from its own switches, through libibnetdisc and libibumad. */
#ifndef IBSHIFT_FABRIC_LIVE_H
#define IBSHIFT_FABRIC_LIVE_H

#include "fabric/graph/fabric.h"

#define FABRIC_LIVE_FLIGHT_MAX 128

struct fabric_live {
    const char *device; /* NULL: the first with an active port */
    int port;           /* 0: the first active one */
    unsigned in_flight; /* MADs sent and not yet answered, at most */
    bool has_progress;  /* a bar on stderr */
};

/* Nodes, cables, LIDs and forwarding tables. 0 or a negative errno with the reason. */
int fabric_live_read(const struct fabric_live *live, struct ibshift_fabric **fabric,
                     struct ibshift_error *err);

/* The second half: fills the tables of a fabric whose switches have LIDs. */
int fabric_live_tables(const struct fabric_live *live, struct ibshift_fabric *f,
                       const unsigned *top, struct ibshift_error *err);

/* How many of the switches that libibnetdisc found say that they route adaptively. */
struct ibnd_fabric;
uint32_t fabric_live_adaptive(const struct fabric_live *live, const struct ibnd_fabric *found);

/* Redraws "what: 12 of 80" in place; the last call ends the line. */
void fabric_live_progress(const struct fabric_live *live, const char *what, uint64_t done,
                          uint64_t all);

#endif
