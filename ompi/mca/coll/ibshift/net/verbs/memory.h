#ifndef IBSHIFT_NET_VERBS_MEMORY_H
#define IBSHIFT_NET_VERBS_MEMORY_H

/* How the registered memory is divided. */

#include "net/verbs/private.h"

enum {
    IBSHIFT_RING_PAYLOAD = 1024, /* bytes: a longer record's fingerprint takes both sides more time
                                    than the completion of a send does */
    IBSHIFT_RING_RECORD = 1088,  /* bytes in whole cache lines, of which the last are the header */
    IBSHIFT_RING_RECORDS = 64,   /* a power of two, so that the count may wrap */
    IBSHIFT_RING_HOT = 32,       /* messages lately that make a peer hot */
    IBSHIFT_SLOTS_MIN = 128,
    IBSHIFT_UD_STRIDE = 192, /* a datagram behind the 40 bytes of its route header */
    IBSHIFT_UD_BYTES = 2 * IBSHIFT_UD_DEPTH * IBSHIFT_UD_STRIDE,
};
static_assert(IBSHIFT_RING_PAYLOAD + sizeof(struct ibshift_wire) <= IBSHIFT_RING_RECORD,
              "a record holds the longest message and its header");
static_assert(sizeof(struct ibshift_hello) + 40 <= IBSHIFT_UD_STRIDE, "a datagram fits");

/* The header is the end of a record, its mark the last word. */
static inline uint8_t *ibshift_ring_record_end(const struct ibshift_ring *ring, uint32_t number)
{
    return ring->data + (size_t)(number % IBSHIFT_RING_RECORDS + 1) * IBSHIFT_RING_RECORD;
}

/* What the peer may write into its ring: held records keep their places. */
static inline uint32_t ibshift_ring_limit(const struct ibshift_connection *c)
{
    return c->in.ring != NULL ? c->in.ring_head + IBSHIFT_RING_RECORDS - c->in.ring_held : 0;
}

#endif
