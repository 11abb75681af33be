#ifndef IBSHIFT_NET_CAST_JOIN_H
#define IBSHIFT_NET_CAST_JOIN_H

/*
 * A multicast group as a plain user gets one: the kernel's connection manager asks the subnet
 * administrator, who makes it and tells switches that this port is in it. Touches no net.
 */

#include "net/verbs/verbs.h"

/* Where a group is. gid all zero: none yet. */
struct ibshift_cast_place {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t service_level, gid_index, hops, port;
    uint32_t key;    /* of its datagrams (Q_Key) */
    uint64_t secret; /* that they carry; the members tell one another */
};

struct ibshift_join {
    int device; /* -1: none; while it is open, the port is in the group */
    uint32_t id;
    const struct ibshift_verbs *verbs;
};

/* On the first port of verbs. 0, or a negative errno with a line in error. */
int ibshift_join_open(const struct ibshift_verbs *verbs, struct ibshift_join *join, char *error,
                      size_t size);

/* Waits for the answer, some seconds at most. place->gid says which group, or zero: a new one; then all of place is
 * set. 0, or a negative errno with a line in error. */
int ibshift_join_group(struct ibshift_join *join, struct ibshift_cast_place *place, char *error,
                       size_t size);

/* Leaves it, too. */
void ibshift_join_close(struct ibshift_join *join);

#endif
