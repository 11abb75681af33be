/* Which ranks share the processors of a host and a port: the crowd that a price takes into account,
 * from what each rank tells of its place. */
#ifndef IBSHIFT_CHOOSE_CROWD_H
#define IBSHIFT_CHOOSE_CROWD_H

#include "choose/price.h"

/* Where a rank is. Equal identities mean that it is the same. */
struct ibshift_place {
    uint64_t host, port;
    uint32_t processors; /* of the host */
};

/* Hosts and ports are numbered as ranks come to them. Ranks of a host that tell different numbers
 * of processors have together what the luckiest has. 0 or -ENOMEM; then nothing is to be freed. */
int ibshift_crowd_make(const struct ibshift_place *places, uint32_t ranks,
                       struct ibshift_crowd *crowd);
void ibshift_crowd_free(struct ibshift_crowd *crowd);

/* How many ranks the fullest of count hosts (ports) has; *which of them it is. 0: no memory. */
uint32_t ibshift_crowd_most(const uint32_t *number_of, uint32_t ranks, uint32_t count,
                            uint32_t *which);

#endif
