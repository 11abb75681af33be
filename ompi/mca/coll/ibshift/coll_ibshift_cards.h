#ifndef IBSHIFT_COLL_CARDS_H
#define IBSHIFT_COLL_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/node/segment.h"

/*
 * Cards: what each process of the job publishes about its endpoint, through the launcher's
 * key-value exchange; and who can reach whom, as the cards say. A process without an endpoint
 * publishes a card that says why.
 */

struct ompi_communicator_t;

/* What the ranks of a communicator must have alike. */
struct ibshift_card_values {
    uint64_t fabric; /* identity of the fabric file; 0: none, does not matter otherwise */
    uint64_t
        params;     /* digest of the parameters that all ranks must have alike: publish() sets it */
    uint64_t model; /* digest of the cost model */
    uint64_t costs; /* digest of measured costs; 0: none, does not matter otherwise */
};

struct ibshift_card {
    const void *address;                  /* of the adapter's ports; NULL: there is no adapter */
    size_t size;                          /* of address */
    const char *error;                    /* why there is no adapter */
    bool is_to_be_said;                   /* the error: even when nobody asks */
    const struct ibshift_node_card *node; /* shared memory (net/node/node.h); NULL: none */
    uint32_t processors;                  /* of the host */
    bool is_crowded;                      /* it has more ranks of the job than processors */
    bool is_software;                     /* the device: processors do the wire's work */
    struct ibshift_card_values values;
};

/* Before the processes exchange data in MPI_Init. */
void ibshift_card_publish(const struct ibshift_card *card);

/* Where a process is: what it shares with others. */
struct ibshift_card_place {
    uint64_t host, port; /* identities */
    uint64_t node;       /* the same for processes that share memory; 0: with nobody */
    uint64_t fabric;     /* identity of its fabric file; 0: none */
    uint64_t costs;      /* digest of its measured costs; 0: none */
    uint32_t processors; /* of the host */
    bool is_crowded;     /* it has more ranks of the job than processors */
    bool is_software;    /* its device: processors do the wire's work */
    bool has_adapter;
    uint16_t pkey; /* of the adapter's first port */
};

/* Whether the process has an adapter or shared memory that we understand, and the same values; then
 * place is set. */
bool ibshift_card_place(uint32_t peer, struct ibshift_card_place *place);

/*
 * The ranks of an intracommunicator as peers of the net, for free(); NULL when one of them cannot
 * be reached over the net: the same answer on all of them.
 */
uint32_t *ibshift_cards_peers(struct ompi_communicator_t *comm);

/* Why the communicator of the whole job is not native, in words. */
void ibshift_cards_why_not(struct ompi_communicator_t *comm, char *text, size_t size);

/* What nets ask (net/verbs/verbs.h, net/node/node.h). copy() copies up to size bytes of the address
 * and returns its full length or a negative errno. */
int ibshift_card_copy(void *context, uint32_t peer, void *address, size_t size);
int ibshift_card_node(void *context, uint32_t peer, struct ibshift_node_card *card);

/* Whether both share memory: the same answer on both sides. */
bool ibshift_card_is_near(void *context, uint32_t peer);

/*
 * How it is known that the peer's process has ended, or NULL. A connection notices by itself when
 * its other end is gone; this is for a peer that there is no connection with yet. Only processes
 * under the same kernel can be looked at.
 */
const char *ibshift_card_has_ended(void *context, uint32_t peer);

/* Forgets what was looked up. */
void ibshift_cards_forget(void);

#endif
