#ifndef IBSHIFT_NET_VERBS_MEMORY_H
#define IBSHIFT_NET_VERBS_MEMORY_H

/* How the registered memory is divided. */

#include "net/verbs/private.h"

enum {
    IBSHIFT_RING_RECORD = 4160, /* bytes, of which the last are the header */
    IBSHIFT_RING_RECORDS = 16,  /* a power of two, so that the count may wrap */
    IBSHIFT_RING_HOT = 32,      /* messages lately that make a peer hot */
    IBSHIFT_SLOTS_MIN = 128,
    IBSHIFT_UD_STRIDE = 192, /* a datagram behind the 40 bytes of its route header */
    IBSHIFT_UD_BYTES = 2 * IBSHIFT_UD_DEPTH * IBSHIFT_UD_STRIDE,
};
static_assert(sizeof(struct ibshift_hello) + 40 <= IBSHIFT_UD_STRIDE, "a datagram fits");

#endif
