#ifndef IBSHIFT_NET_BY_PEER_H
#define IBSHIFT_NET_BY_PEER_H

/*
 * Two nets as one: each peer is reached over the one that is its, the same one from both sides. A
 * plan does not know which.
 */

#include "net/net.h"

/*
 * is_near: whether this peer is reached over near; asked once per peer below peers. Both nets are
 * destroyed with the result. NULL: no memory, and both are still the caller's.
 */
struct ibshift_net *ibshift_net_by_peer_create(struct ibshift_net *near, struct ibshift_net *far,
                                               uint32_t peers,
                                               bool (*is_near)(void *context, uint32_t peer),
                                               void *context);

#endif
