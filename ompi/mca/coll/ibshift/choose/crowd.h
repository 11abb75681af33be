/* Which ranks share the processors of a host and a port, from what each rank tells of its place, and
 * how long what they share is busy with all of them. */
#ifndef IBSHIFT_CHOOSE_CROWD_H
#define IBSHIFT_CHOOSE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "choose/param.h"

/* Who shares what. */
struct ibshift_crowd {
    uint32_t hosts, ports;
    const uint32_t *host_of; /* by rank */
    const uint32_t *port_of;
    const uint32_t *processors; /* by host: of all its ranks together */
    bool is_crowded;            /* some host has fewer of them than ranks of the job */
    uint32_t most;              /* ranks of a host */
};

/* Where a rank is. Equal identities mean that it is the same. */
struct ibshift_place {
    uint64_t host, port;
    uint32_t processors; /* of the host */
    bool is_crowded;     /* the host: by all ranks of the job, which may be more than ask here */
};

/* Hosts and ports are numbered as ranks come to them. Ranks of a host that tell different numbers
 * of processors have together what the luckiest has. 0 or -ENOMEM; then nothing is to be freed. */
int ibshift_crowd_make(const struct ibshift_place *places, uint32_t ranks,
                       struct ibshift_crowd *crowd);
void ibshift_crowd_free(struct ibshift_crowd *crowd);

/* How many ranks the fullest of count hosts (ports) has; *which of them it is. 0: no
 * memory, so that it is for words alone. */
uint32_t ibshift_crowd_most(const uint32_t *number_of, uint32_t ranks, uint32_t count,
                            uint32_t *which);

/* A port in one direction: when it is free for the next message (a virtual clock of g) and byte. */
struct ibshift_port_load {
    double turn, wire;
    double gaps, bytes; /* us that all its messages take it: their gaps, their bytes */
};

/* When the port takes a message that comes at `now`; *end is when its last byte is through. */
double ibshift_port_take(const struct ibshift_model *model, struct ibshift_port_load *port,
                         double now, uint64_t bytes, double *end);

/* What one rank alone does to its processor and its port. */
struct ibshift_load {
    double worked; /* us of its processor */
    struct ibshift_port_load out, in;
};

/* What the time is that of. */
enum ibshift_price_of {
    IBSHIFT_PRICE_PATH,
    IBSHIFT_PRICE_PROCESSORS,
    IBSHIFT_PRICE_PORT,
    IBSHIFT_PRICE_LINKS /* of the fabric, which add to it */
};

/* What ranks have done as if each had a processor and a port of its own. */
struct ibshift_run {
    uint32_t ranks;
    const struct ibshift_load *loads; /* by rank */
    double path;                      /* us of the slowest rank */
    uint32_t hops;                    /* messages of the longest chain, each waiting for the last */
};

/* How long the run takes at the least where these share processors and ports, and what of them
 * takes so long. 0 or -ENOMEM. */
int ibshift_crowd_share(const struct ibshift_crowd *crowd, const struct ibshift_run *run,
                        const struct ibshift_model *model, double *time, enum ibshift_price_of *of);

#endif
