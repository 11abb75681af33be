#ifndef IBSHIFT_COLL_CARD_H
#define IBSHIFT_COLL_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Cards: what each process of the job publishes about its endpoint, through the launcher's
 * key-value exchange. A process without an endpoint publishes an empty one.
 */

/* Before the processes exchange data in MPI_Init. card is NULL without an endpoint; fabric:
 * identity of the fabric file, 0 without one. */
void ibshift_card_publish(const void *card, size_t size, uint64_t fabric);

/* The identity of the fabric file that the process has; 0: none. */
uint64_t ibshift_card_fabric(uint32_t peer);

/* Has the process an endpoint that understands this one? */
bool ibshift_card_is_there(uint32_t peer);

/* Copies up to size bytes; returns the full length or a negative errno. Fits net_verbs.h. */
int ibshift_card_copy(void *context, uint32_t peer, void *card, size_t size);

/* Forgets what was looked up. */
void ibshift_cards_forget(void);

#endif
