#ifndef IBSHIFT_NET_CAST_CAST_H
#define IBSHIFT_NET_CAST_CAST_H

/*
 * Multicast: a short message goes to all members of a group as one datagram, which may be lost, come twice or out of
 * order. What makes it a message of net.h:
 *
 *   numbers   a sender counts its datagrams to the group. Receivers take each number once, and acknowledge
 *             every so many of them, over the connection with the sender.
 *   window    the sender keeps what not all have acknowledged; more than IBSHIFT_CAST_WINDOW are none, and a send that comes
 *             then waits (-EAGAIN).
 *   repair    who misses one says so over the connection, and gets it over the connection: by its number when a
 *             later one has come, or by its key when its receive has waited for a while, and again after twice
 *             as long. The first while is learnt.
 *
 * So a member that joins late, or whose receives were used up, has merely lost some. One that
 * dies is noticed by the connection, which the sender looks at when it waits for the window.
 */

#include "net/cast/join.h"

enum { IBSHIFT_CAST_WINDOW = 32 };

struct ibshift_cast;

struct ibshift_cast_members {
    const uint32_t *peers;
    uint32_t count, rank;
    size_t most;  /* bytes of a message: the least of what they all know */
    uint64_t way; /* ns that a datagram of so many is on its way, by the model; 0: not known */
    bool (*is_near)(void *context,
                    uint32_t peer); /* reached by another net: what it casts is not for us */
};

/* The longest message that a datagram to these peers carries, as far as this one knows them; 0: none of any use. */
size_t ibshift_cast_most(struct ibshift_net *net, const uint32_t *peers, uint32_t count);

/* 0, or a negative errno with a line in error. The join is the cast's from then on. */
int ibshift_cast_open(struct ibshift_net *net, const struct ibshift_cast_members *members,
                      const struct ibshift_cast_place *place, struct ibshift_join *join,
                      struct ibshift_cast **cast, char *error, size_t size);

/* No message of it is posted here. Those that a member may still miss are kept by the net until it has them. */
void ibshift_cast_close(struct ibshift_cast *cast);

#endif
