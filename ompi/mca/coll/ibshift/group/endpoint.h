/*
 * The process's one endpoint: device, nets, engine. Opened before the processes exchange their cards, so
 * that a process whose endpoint fails says so in its card and all ranks of a group decide alike.
 */
#ifndef IBSHIFT_GROUP_ENDPOINT_H
#define IBSHIFT_GROUP_ENDPOINT_H

#include "exec/engine.h"
#include "job/cards.h"
#include "net/verbs/verbs.h"

struct ibshift_endpoint {
    struct ibshift_engine *engine; /* NULL: this process has no endpoint */
    struct ibshift_net *net;       /* adapter and shared memory as one */
    bool (*finds_again)(void);     /* of registrations (verbs.h), where they may be held; or NULL */
    bool is_crowded;               /* this host has more ranks of the job than processors */
    struct ibshift_verbs *verbs;
    struct ibshift_net *adapter, *node; /* the nets that there are; NULL: none */
};

/* Set by open() and close(). */
extern struct ibshift_endpoint ibshift_endpoint;

/* The engine's option trace. */
typedef void ibshift_trace_t(void *context, const struct ibshift_op *op, const char *line);

/* What the shell knows of the job, and does for it. */
struct ibshift_launch {
    uint32_t self, processes; /* of the job; as peers they have these numbers */
    uint32_t job;             /* tells it from the other jobs of the host */
    uint32_t place, near;     /* this process among so many of the job on the host */
    void *
        topology; /* hwloc_topology_t; ports are chosen by it when there are several. NULL: all are as near */
    const bool *has_threads; /* as the engine's option */
    bool is_tolerant;        /* as the net's over verbs */
    struct ibshift_net_comms comms;
    struct ibshift_exchange exchange;
    int release[3]; /* of Open MPI, which measured costs are kept under; all 0: there is none */
    /* Registrations that outlive their use; close() comes between the net's end and the device's. NULL: each message registers. */
    const struct ibshift_region_cache *(*open_cache)(struct ibshift_verbs *verbs);
    void (*close_cache)(void);
    /* Asked when there is an engine; returns NULL, or what hears of each step as it starts. NULL: nothing does. */
    ibshift_trace_t *(*open_trace)(void);
};

/* Never fails: without a usable device there is no endpoint. Makes the card for the other processes and returns its size.
 * launch lives until close(). */
size_t ibshift_endpoint_open(const struct ibshift_launch *launch, char card[IBSHIFT_CARD_MAX]);
void ibshift_endpoint_close(void);

#endif
