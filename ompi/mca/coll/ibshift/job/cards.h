#ifndef IBSHIFT_JOB_CARDS_H
#define IBSHIFT_JOB_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/node/node.h"

/*
 * Cards: what each process of the job publishes about its endpoint, through the launcher's
 * key-value exchange; and who can reach whom, as the cards say. A process without an endpoint
 * publishes a card that says why.
 */

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

/* What the job's launcher does for its processes. */
struct ibshift_exchange {
    uint32_t arch; /* how it represents numbers */
    /* What the peer has published, for free(); NULL: nothing. */
    char *(*receive)(uint32_t peer, size_t *size);
    /* The first that differs between two agreed texts, in words; false: none that they tell. */
    bool (*differ)(const char *theirs, const char *ours, char *words, size_t size);
};

enum { IBSHIFT_CARD_MAX = 8192 };

/* Makes the card's bytes, which others are to receive, and begins to look up others'. agreed: the
 * text whose digest is values.params. Returns their number. */
size_t ibshift_cards_open(const struct ibshift_exchange *exchange, const struct ibshift_card *card,
                          const char *agreed, char bytes[IBSHIFT_CARD_MAX]);

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

/* Whether the peers reach each other: over the adapters of all of them, or in the memory of the one
 * host that they are all on. The same answer on all of them. */
bool ibshift_cards_reach(const uint32_t *peers, uint32_t count);

/*
 * Of a whole job, of so many processes. absent(): how many of them others must hear of, as they
 * have no place in it; the first and why. keys_apart(): whether all have adapters, and partition
 * keys keep two of them apart; then text says which and what to do. why_not(): why the job is not
 * native, in words.
 */
uint32_t ibshift_cards_absent(uint32_t count, uint32_t *first, char *text, size_t size);
bool ibshift_cards_keys_apart(uint32_t count, char *text, size_t size);
void ibshift_cards_why_not(uint32_t count, char *text, size_t size);

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
