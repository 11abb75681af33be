#ifndef SOFTHCA_MCAST_H
#define SOFTHCA_MCAST_H

#include "shm/shm.h"

/* The queue pairs of a multicast group, into SHM_MEMBERS places. */
uint32_t mcast_members(const struct shm_av *av, uint32_t *members);
/* Takes a dying queue pair out of all groups. */
void mcast_forget(uint32_t qp);

#endif
