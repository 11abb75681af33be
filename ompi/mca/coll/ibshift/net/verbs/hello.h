#ifndef IBSHIFT_NET_VERBS_HELLO_H
#define IBSHIFT_NET_VERBS_HELLO_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/verbs/choice.h"

/*
 * The handshake that connects two processes over unreliable datagrams. It is symmetric: each side
 * repeats its HELLO until it knows that the other one has it, so it makes no difference who
 * starts, or whether both do, and what is lost, doubled or overtaken on the way.
 *
 *      A                     B              A may send data when it has B's HELLO and B has A's:
 *      |---- WANT ---------->|  connects    only then are both queue pairs up.
 *      |<--- HAVE|WANT ------|
 *      |---- HAVE ---------->|  may send    HAVE: I have yours. WANT: I don't know that you have
 *   may send                                mine; a HELLO with WANT is always answered.
 *
 * Enhanced connection establishment (ECE): queue pairs have options of their vendor's, and both must
 * have the same. Then the sides differ: the second one's HELLOs say what it can, the first one sets as
 * much of it as its device has, and what that is stands in its HELLOs with HAVE, which alone
 * connect the second one.
 */
enum { IBSHIFT_HELLO_MAGIC = 0x6f6c4c48, IBSHIFT_HELLO_VERSION = 16 };

enum ibshift_hello_kind {
    IBSHIFT_HELLO_CONNECT = 1,
    IBSHIFT_HELLO_ASK = 2,  /* I have no credit left and something to send */
    IBSHIFT_HELLO_BYE = 3,  /* I have given this connection up */
    IBSHIFT_HELLO_WHO = 4,  /* does peer word_key, who does not answer me, answer you? */
    IBSHIFT_HELLO_GONE = 5, /* it does not, or its process has ended on my host */
};

enum { IBSHIFT_HELLO_HAVE = 1, IBSHIFT_HELLO_WANT = 2 };

enum { IBSHIFT_PATH_MAX = 127 }; /* a port has 128 LIDs at most */

struct ibshift_hello {
    uint32_t magic;
    uint16_t version;
    uint8_t kind;
    uint8_t flags;
    uint64_t from_incarnation;
    uint64_t to_incarnation;
    uint32_t from_peer;
    uint32_t to_peer;
    uint64_t word_address; /* where the receiver of this HELLO writes its counters */
    uint32_t word_key;
    uint32_t max_eager;
    uint16_t credits; /* messages that the receiver of this HELLO may send at once; ASK: that the
                         sender has been told it may send, ever */
    uint16_t quota;   /* of them, messages that nobody waits for yet */
    uint8_t rails;
    uint8_t path; /* added to the LID of the receiver's port: where the sender's data goes */
    uint8_t reserved[6];
    /* BYE: why, a negative errno. -EMSGSIZE: the message has word_address bytes here and max_eager
     * * 2^32 + word_key where this HELLO goes. -ECONNABORTED: a collective was given up, which began
     * with peer word_key and errno max_eager. */
    int32_t status;
    struct {
        uint32_t qpn;
        uint32_t psn;
        uint32_t ece_vendor; /* 0: none */
        uint32_t ece_options;
    } rail[IBSHIFT_PORTS_MAX];
};
static_assert(sizeof(struct ibshift_hello) == 128, "the datagram is a wire format");

void ibshift_hello_encode(const struct ibshift_hello *hello, void *wire);

/* 0; -EPROTO: not ours or of another version; -EINVAL: out of range. */
int ibshift_hello_decode(const void *wire, size_t size, struct ibshift_hello *hello);

/* Where the handshake with one peer stands. All zero: not begun. */
struct ibshift_handshake {
    uint8_t is_begun;
    uint8_t has_theirs;
    uint8_t they_have_mine;
    uint8_t tries;
    uint64_t next; /* when to repeat */
};

/* What the caller has to do, in this order. */
enum {
    IBSHIFT_SHAKE_CONNECT = 1, /* bring the queue pairs up with this HELLO's numbers */
    IBSHIFT_SHAKE_SEND = 2,    /* send a HELLO with the flags of ibshift_handshake_flags() */
    IBSHIFT_SHAKE_READY = 4,   /* data may go out from now on */
};

unsigned ibshift_handshake_begin(struct ibshift_handshake *h, uint64_t now);
/* is_second: this side takes the options from the other one. */
unsigned ibshift_handshake_receive(struct ibshift_handshake *h, uint8_t flags, bool is_second,
                                   uint64_t now);
unsigned ibshift_handshake_tick(struct ibshift_handshake *h, uint64_t now, uint32_t noise);

static inline uint8_t ibshift_handshake_flags(const struct ibshift_handshake *h)
{
    return (uint8_t)((h->has_theirs ? IBSHIFT_HELLO_HAVE : 0) |
                     (h->they_have_mine ? 0 : IBSHIFT_HELLO_WANT));
}

static inline int ibshift_handshake_is_done(const struct ibshift_handshake *h)
{
    return h->has_theirs && h->they_have_mine;
}

#endif
