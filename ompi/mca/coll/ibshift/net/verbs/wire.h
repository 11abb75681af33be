#ifndef IBSHIFT_NET_VERBS_WIRE_H
#define IBSHIFT_NET_VERBS_WIRE_H

/* What two connected processes write to each other; little endian, as the key is. */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "net/net.h"
#include "net/verbs/choice.h"
#include "net/verbs/fingerprint.h"

enum ibshift_wire_kind {
    IBSHIFT_WIRE_DATA = 1, /* a short message */
    IBSHIFT_WIRE_PIECE,    /* a part of a long one that could not be written in place */
    IBSHIFT_WIRE_GRANT,    /* write a long message here */
    IBSHIFT_WIRE_PULL,     /* send this short message, I wait for it */
    IBSHIFT_WIRE_UNPULL,   /* forget the PULL: the message had been sent before it */
    IBSHIFT_WIRE_PROBE,    /* I wait for the grant of this long message */
    IBSHIFT_WIRE_RING,     /* a ring for your short messages */
    IBSHIFT_WIRE_ABORT,    /* I have given this collective up, because of peer id, errno pieces */
    IBSHIFT_WIRE_ASK,      /* do you take part in this collective? */
    IBSHIFT_WIRE_ENDED,    /* I have, and need and give nothing more */
    IBSHIFT_WIRE_CAST_MISS, /* of the multicast group `address` I, its member `id`, miss your number `pieces`, or with length 1
                                 the message of this key */
    IBSHIFT_WIRE_CAST_HAVE,   /* ... have all your numbers below `pieces` */
    IBSHIFT_WIRE_CAST_REPAIR, /* a datagram that you miss */
};

enum {                           /* flags */
       IBSHIFT_WIRE_UNASKED = 1, /* nobody may be waiting: a SEND took quota, a record's place in
                                 the ring comes back when it is matched */
       IBSHIFT_WIRE_TELL = 2,    /* the ring is nearly full: tell me its limit */
};

/* In front of the payload; in a ring behind it, so that the mark is written last. */
struct ibshift_wire {
    struct ibshift_net_key key;
    uint32_t length;             /* of the payload */
    uint16_t slots, quota, ring; /* limits for what comes back: see credit.h */
    uint8_t kind;
    uint8_t flags;
    uint32_t offset; /* PIECE: in units of max_eager; in a ring: ibshift_wire_check() */
    uint32_t mark;   /* PIECE: its grant; in a ring: the number of the record, from 1 */
};
static_assert(sizeof(struct ibshift_wire) == 32, "the header is a wire format");

/* A header as the four words that the fingerprint is made of, so that they stay in registers. */
struct ibshift_wire_words {
    uint64_t of[4];
};
static_assert(sizeof(struct ibshift_wire_words) == sizeof(struct ibshift_wire), "all of it");

/*
 * A fingerprint of a record. The order in which the bytes of a write land is not promised by
 * InfiniBand, though most devices write the last ones last: a record counts when its mark is there
 * and the fingerprint fits. Where the receiver's device promises the order, it covers none of the
 * payload: the header's part tells the mark from an earlier record's data. The lower half of the last
 * word, where it goes, does not count.
 */
static inline uint64_t ibshift_wire_check_head(const struct ibshift_wire_words *head)
{
    uint64_t sum = ibshift_fingerprint_mix(head->of[0] ^ 0xa0761d6478bd642fu,
                                           head->of[1] ^ 0xe7037ed1a0b428dbu);

    return ibshift_fingerprint_mix(sum ^ head->of[2],
                                   (head->of[3] & ~0xffffffffull) ^ 0x8ebc6af09c88c6e3u);
}

/* data: a word, or the fingerprint of more or less than that. */
static inline uint32_t ibshift_wire_check_data(uint64_t head, uint64_t data)
{
    return (uint32_t)(ibshift_fingerprint_mix(head ^ data, 0x9e3779b97f4a7c15u) >> 32);
}

static inline uint32_t ibshift_wire_check(const struct ibshift_wire_words *words,
                                          const void *payload, uint32_t covered)
{
    uint64_t head = ibshift_wire_check_head(words);

    if (covered == 0) {
        return (uint32_t)(head >> 32);
    }
    return ibshift_wire_check_data(head, covered == sizeof(uint64_t)
                                             ? ibshift_fingerprint_word(payload)
                                             : ibshift_fingerprint(payload, covered));
}

static inline struct ibshift_wire_words ibshift_wire_words_at(const void *at)
{
    const uint8_t *head = at;

    return (struct ibshift_wire_words){
        {ibshift_fingerprint_word(head), ibshift_fingerprint_word(head + 8),
         ibshift_fingerprint_word(head + 16), ibshift_fingerprint_word(head + 24)}};
}

enum {
    IBSHIFT_GRANT_PIECES = 1, /* send pieces instead of writing */
    IBSHIFT_GRANT_STANDS = 2, /* it is good for messages to come, too: long.c */
};

/* The payload of GRANT, PULL, PROBE, RING and ABORT. */
struct ibshift_wire_grant {
    uint64_t address;
    uint64_t length;                 /* of the whole message */
    uint32_t id;                     /* comes back as immediate data; RING: records */
    uint32_t pieces;                 /* GRANT: IBSHIFT_GRANT_*; RING: 1: data lands in order,
                                        fingerprints cover the header alone */
    uint32_t key[IBSHIFT_PORTS_MAX]; /* one a rail */
    uint64_t seed;                   /* RING */
};
static_assert(sizeof(struct ibshift_wire_grant) == 48, "the grant is a wire format");

/* Limits that the peer writes into our memory when it has nothing else to say. */
struct ibshift_word {
    uint32_t slots, quota, ring, reserved;
};
static_assert(sizeof(struct ibshift_word) == 16, "the word is a wire format");

/*
 * Immediate data: a grant's place and age, and into how many parts the message was cut.
 */
enum { IBSHIFT_IMMEDIATE_PARTS = 3, IBSHIFT_IMMEDIATE_SHIFT = 2 };
static_assert(IBSHIFT_PORTS_MAX <= IBSHIFT_IMMEDIATE_PARTS + 1, "a part a port");

static inline uint32_t ibshift_immediate(uint32_t id, uint32_t parts)
{
    return id << IBSHIFT_IMMEDIATE_SHIFT | (parts - 1);
}

static inline uint32_t ibshift_immediate_id(uint32_t immediate)
{
    return immediate >> IBSHIFT_IMMEDIATE_SHIFT;
}

static inline uint32_t ibshift_immediate_parts(uint32_t immediate)
{
    return (immediate & IBSHIFT_IMMEDIATE_PARTS) + 1;
}

#endif
