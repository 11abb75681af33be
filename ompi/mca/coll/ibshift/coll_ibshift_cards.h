#ifndef IBSHIFT_COLL_CARDS_H
#define IBSHIFT_COLL_CARDS_H

#include "coll_ibshift_death.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/node/segment.h"

/*
 * Cards: what each process of the job publishes about its endpoint, through the launcher's
 * key-value exchange. A process without an endpoint publishes an empty one.
 */

/* What the ranks of a communicator must have alike. */
struct ibshift_card_values {
    uint64_t fabric; /* identity of the fabric file; 0: none, does not matter otherwise */
    uint64_t params; /* digest of the parameters that all ranks must have alike */
    uint64_t model;  /* digest of the cost model */
};

/* Where a process is: what it shares with others. */
struct ibshift_card_place {
    uint64_t host, port; /* identities */
    uint64_t node;       /* the same for processes that share memory; 0: with nobody */
    uint32_t processors; /* of the host */
    bool is_software;    /* its device: processors do the wire's work */
    struct ibshift_process process;
    bool has_adapter;
};

/*
 * Before the processes exchange data in MPI_Init. card is NULL without an adapter; error says
 * then why there is none, and whether that is to be said unasked. node is NULL without shared
 * memory (net/node/node.h). text: of ibshift_params_agreed(), for the words about a difference.
 */
void ibshift_card_publish(const void *card, size_t size, const struct ibshift_node_card *node,
                          const struct ibshift_card_values *values, const char *text,
                          const struct ibshift_card_place *place, const char *error,
                          bool is_to_be_said);

/* The identity of the fabric file that the process has; 0: none. */
uint64_t ibshift_card_fabric(uint32_t peer);

/* Has the process an adapter or shared memory that we understand, and the same values? */
bool ibshift_card_is_there(uint32_t peer);

/* Of a process that is there. */
struct ibshift_card_place ibshift_card_place(uint32_t peer);

/* Why it is not there; returns whether that is to be said unasked. */
bool ibshift_card_complaint(uint32_t peer, char *text, size_t size);

/* Copies up to size bytes; returns the full length or a negative errno. Fits net_verbs.h. */
int ibshift_card_copy(void *context, uint32_t peer, void *card, size_t size);

/* Fits net/node/node.h. */
int ibshift_card_node(void *context, uint32_t peer, struct ibshift_node_card *card);

/* Whether both share memory: the same answer on both sides. */
bool ibshift_card_is_near(void *context, uint32_t peer);

/* Forgets what was looked up. */
void ibshift_cards_forget(void);

#endif
