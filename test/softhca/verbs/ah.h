#ifndef SOFTHCA_AH_H
#define SOFTHCA_AH_H

#include "verbs/hca.h"

/* Resolves and checks an address given by a program. 0 or an errno. */
int av_make(const struct hca_ctx *ctx, const struct ibv_ah_attr *attr, struct shm_av *av);
/* The port an address leads to, SHM_NONE when it leads nowhere. */
uint32_t av_port(const struct shm_av *av);
bool av_is_multicast(const struct shm_av *av);

/* The queue pairs of a multicast group, into SHM_MEMBERS places. */
uint32_t mcast_members(const struct shm_av *av, uint32_t *members);
/* Whether the queue pair is in a group; with `leaves` it is in none any more. */
bool mcast_is_member(uint32_t qp, bool leaves);

#endif
