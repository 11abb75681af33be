#ifndef IBSHIFT_COLL_CARDS_H
#define IBSHIFT_COLL_CARDS_H

#include "job/cards.h"

struct ompi_communicator_t;

/* Before the processes exchange data in MPI_Init. */
void ibshift_card_publish(struct ibshift_card *card);

/*
 * The ranks of an intracommunicator as peers of the net, for free(); NULL when one of them cannot
 * be reached over the net: the same answer on all of them.
 */
uint32_t *ibshift_cards_peers(struct ompi_communicator_t *comm);

#endif
