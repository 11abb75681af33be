#ifndef IBSHIFT_COLL_TRANSPORT_H
#define IBSHIFT_COLL_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "coll_ibshift_regcache.h"
#include "exec/engine.h"
#include "net/node/node.h"

struct ompi_communicator_t;

/*
 * The process's one endpoint: device, net, engine, and who else in the job has one. Opened with the
 * component, before the processes exchange their cards, so that a process whose endpoint fails says
 * so in its card and all ranks of a communicator decide alike.
 */

/* Never fails: without a usable device there is no endpoint. Publishes the card. */
void ibshift_transport_open(void);
void ibshift_transport_close(void);

/* NULL: this process has no endpoint. */
struct ibshift_engine *ibshift_transport_engine(void);

/* More ranks of the job are on this host than it has processors. */
bool ibshift_transport_is_crowded(void);

/*
 * The ranks of an intracommunicator as peers of the net, for free(); NULL when one of them cannot
 * be reached over the net: the same answer on all of them.
 */
uint32_t *ibshift_transport_peers(struct ompi_communicator_t *comm);

struct ibshift_transport_counters {
    struct ibshift_engine_stats engine;
    struct ibshift_net_verbs_stats net;
    struct ibshift_node_stats node;
    struct ibshift_regcache_stats regcache;
};

/* All 0 without an endpoint. */
void ibshift_transport_counters(struct ibshift_transport_counters *counters);

/* Reports a collective that failed with a status of net.h. Returns the OMPI code for it. */
int ibshift_transport_report(struct ompi_communicator_t *comm, const struct ibshift_op *op,
                             const char *collective);

/* Why the communicator of the whole job is not native, in words. */
void ibshift_transport_why_not(struct ompi_communicator_t *comm, char *text, size_t size);

#endif
