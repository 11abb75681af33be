#ifndef IBSHIFT_COLL_TRANSPORT_H
#define IBSHIFT_COLL_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/engine.h"
#include "net/node/node.h"
#include "net/verbs/verbs.h"

/*
 * The process's one endpoint: device, net, engine. Opened with the component, before the processes
 * exchange their cards, so that a process whose endpoint fails says so in its card and all ranks of
 * a communicator decide alike.
 */
struct ibshift_endpoint {
    struct ibshift_engine *engine; /* NULL: this process has no endpoint */
    struct ibshift_net *net;       /* adapter and shared memory as one */
    bool is_crowded;               /* this host has more ranks of the job than processors */
};

/* Set by open() and close(). */
extern struct ibshift_endpoint ibshift_endpoint;

/* The engine's option trace. */
typedef void ibshift_trace_t(void *context, const struct ibshift_op *op, const char *line);

/* Never fails: without a usable device there is no endpoint. Publishes the card. open_trace() is
 * asked when there is one; it returns NULL, or what hears of each step as it starts. */
void ibshift_transport_open(ibshift_trace_t *(*open_trace)(void));
void ibshift_transport_close(void);

struct ibshift_transport_counters {
    struct ibshift_engine_stats engine;
    struct ibshift_net_verbs_stats net;
    struct ibshift_node_stats node;
    uint64_t registration_hits, registrations;
};

/* All 0 without an endpoint. */
void ibshift_transport_counters(struct ibshift_transport_counters *counters);

/*
 * coll_ibshift_trace: each step as it starts, in the printer's words. A file has the bare lines,
 * and before those of another collective than the last line's one that begins with '#': its key
 * (communicator and number, the same on all ranks), what MPI calls it, and the command that prints
 * its plan. On standard error the key stands before every line.
 *
 * NULL: nobody asked, or the file does not open (which is said). Close it when the endpoint has
 * gone.
 */
ibshift_trace_t *ibshift_trace_open(void);
void ibshift_trace_close(void);

#endif
