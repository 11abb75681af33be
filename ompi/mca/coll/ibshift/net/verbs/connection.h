#ifndef IBSHIFT_NET_VERBS_CONNECTION_H
#define IBSHIFT_NET_VERBS_CONNECTION_H

/*
 * A connection with one peer, and the limits that both sides have given each other.
 *
 * Two kinds of credit keep a receiver from being overrun, whatever the number of its peers:
 *   slots  a message that takes a posted receive needs one. They come back as soon
 *          as the message was looked at, whether anyone waited for it or not, so nothing that
 *          waits for slots waits for the program.
 *   quota  a short message that nobody may be waiting for yet needs one more: the right to be
 *          held by the receiver. It comes back when the message is matched. A receiver whose
 *          peer has spent its quota asks for the messages that it waits for by name (PULL), and
 *          those need no quota.
 * A message through a ring needs neither: while a record is held, as many lines of the ring as it
 * took are not given back.
 */

#include <assert.h>
#include <string.h>

#include "net/verbs/credit.h"
#include "net/verbs/device.h"
#include "net/verbs/hello.h"
#include "net/match.h"
#include "net/verbs/wire.h"

struct ibshift_lane;
struct ibshift_connection;

/* A piece of registered memory: a posted receive, a held message, or a copy on its
   way out. */
struct ibshift_slot {
    struct ibshift_slot *next;
    uint8_t *data;
};

/* What a work request id points to: the low bits say which. */
enum ibshift_wr_kind {
    IBSHIFT_WR_PLAIN,  /* nothing to do at completion */
    IBSHIFT_WR_WRITE,  /* struct ibshift_note: a part of a long message is written */
    IBSHIFT_WR_RECV,   /* struct ibshift_slot that a message takes */
    IBSHIFT_WR_EMPTY,  /* a receive without memory, of a device other than the first */
    IBSHIFT_WR_MARKER, /* the last request of a broken queue pair */
    IBSHIFT_WR_PIECE,  /* struct ibshift_note: a piece is written, and the next may go */
    IBSHIFT_WR_CAST,   /* struct ibshift_cast_buffer of a multicast group */
    IBSHIFT_WR_KINDS = 8,
};

static inline uint64_t ibshift_wr_id(void *object, enum ibshift_wr_kind kind)
{
    return (uint64_t)(uintptr_t)object | kind;
}

enum ibshift_note_kind {
    IBSHIFT_NOTE_RECV,     /* posted, in table rx */
    IBSHIFT_NOTE_HELD,     /* came early, in table rx */
    IBSHIFT_NOTE_SEND,     /* short: waits in a queue */
    IBSHIFT_NOTE_LONG,     /* long: waits for its grant (table tx), or is being written */
    IBSHIFT_NOTE_GRANT,    /* the peer's receive for a send that is not posted yet, in table tx */
    IBSHIFT_NOTE_CONTROL,  /* waits in a queue; owned by nobody else */
    IBSHIFT_NOTE_STANDING, /* a grant for messages to come: ours (is_granted), or the peer's */
};

/* One message, or news about one. On exactly one list of its connection. */
struct ibshift_note {
    struct ibshift_match match; /* first: the tables point here */
    struct ibshift_note *next, *previous;
    struct ibshift_notes *list;
    struct ibshift_connection *connection;
    uint8_t kind;      /* enum ibshift_note_kind */
    uint8_t wire_kind; /* CONTROL: enum ibshift_wire_kind */
    bool is_pulled;    /* RECV: asked for by name; SEND: needs no quota */
    bool is_granted;   /* RECV: the peer may write; LONG: so may we */
    bool is_cancelled;
    bool is_apart;     /* HELD: came through a ring */
    bool is_cast;      /* RECV: from a multicast group, which is asked for it */
    bool is_copied;    /* LONG: through slots instead of from the buffer */
    bool has_come;     /* STANDING: the message is there, and its receive is not posted yet */
    bool is_again;     /* RECV: its grant has stood since an earlier message */
    uint32_t standing; /* the number of net.h; 0: none */
    uint8_t parts;     /* LONG: writes that are not complete; RECV: parts that have come */
    uint8_t rail;      /* LONG: its first part's */
    void *buffer;
    size_t length;
    size_t done; /* LONG: bytes posted; RECV in pieces: bytes that have come */
    uint64_t cookie;
    uint32_t
        ended; /* polls when the peer first said that it has ended the collective; 0: not yet */
    struct ibshift_region *region; /* to be put back at the end, or NULL */
    struct ibshift_wire_grant to;  /* LONG, GRANT, CONTROL */
    union {                        /* by kind */
        struct {                   /* RECV, STANDING */
            uint32_t grant;        /* its place in the table of grants */
            uint32_t came;         /* the collective whose message came last */
        };
        struct ibshift_slot *slot; /* HELD: where it lies */
        struct {                   /* LONG */
            uint64_t since;        /* when it began to wait */
            size_t piece; /* with the device at once, and then no other part of it; 0: all */
            uint32_t beside, pieces;               /* as in net.h; of that length, at once */
            struct ibshift_net_mem *mem;           /* the caller's */
            uint32_t local_key[IBSHIFT_PORTS_MAX]; /* one a rail */
        };
    };
};

struct ibshift_notes {
    struct ibshift_note *first, *last;
};

/* Whether the device may still read or write the message's buffer. */
static inline bool ibshift_note_is_with_device(const struct ibshift_note *note)
{
    if (note->kind == IBSHIFT_NOTE_RECV) {
        return note->is_granted && (note->to.pieces & IBSHIFT_GRANT_PIECES) == 0;
    }
    return note->kind == IBSHIFT_NOTE_LONG && note->done > 0 && !note->is_copied;
}

/* A message without data may come without a buffer, which memcpy must not be given. */
static inline void ibshift_nv_copy(void *to, const void *from, size_t length)
{
    if (length > 0) {
        memcpy(to, from, length);
    }
}

struct ibshift_net_verbs;

enum {
    IBSHIFT_RING_PAYLOAD = 16384, /* bytes: twice as many take longer, fingerprinted and copied by
                                    both sides, than a grant does */
    IBSHIFT_RING_LINE = 64, /* bytes: records are whole lines, of which the last has the header */
    IBSHIFT_RING_LINES = 1024, /* a power of two, so that the count may wrap */
    IBSHIFT_RING_MARGIN = IBSHIFT_RING_PAYLOAD / IBSHIFT_RING_LINE, /* below the last line */
    IBSHIFT_RING_BYTES = (IBSHIFT_RING_MARGIN + IBSHIFT_RING_LINES) * IBSHIFT_RING_LINE,
    IBSHIFT_RING_HOT = 32,         /* messages lately that make a peer hot */
    IBSHIFT_REQUESTS_RESERVED = 2, /* for a word, and the marker of a broken connection */
    IBSHIFT_PLAIN_BYTES = 128,     /* of a record that a try sends, with its header */
    IBSHIFT_SLOTS_MIN = 88,
    IBSHIFT_UD_STRIDE = 192, /* a datagram behind the 40 bytes of its route header */
    IBSHIFT_UD_BYTES = 2 * IBSHIFT_UD_DEPTH * IBSHIFT_UD_STRIDE,
};
static_assert(sizeof(struct ibshift_wire) <= IBSHIFT_RING_LINE,
              "the longest record fits into the margin and one line");
static_assert(sizeof(struct ibshift_hello) + 40 <= IBSHIFT_UD_STRIDE, "a datagram fits");

/* A signaled request: with it all up to it are complete, and their copies are free. */
struct ibshift_mark {
    uint32_t upto; /* posted */
    struct ibshift_slot *copies;
};

/* One queue pair of a connection; completion queues find it by number. */
struct ibshift_rail {
    struct ibshift_match by_number; /* first: the table has it */
    struct ibshift_connection *connection;
    struct ibshift_lane *lane;
    struct ibv_qp *qp;
    uint32_t posted, retired;   /* requests, ever */
    uint32_t signaled;          /* posted at the last signaled one */
    uint32_t plain_until;       /* posted, before one must be signaled or there is no room */
    struct ibshift_mark *marks; /* signaled ones that are not complete; a ring */
    uint32_t first_mark, last_mark;
    struct ibshift_slot *copies;         /* of requests behind the last mark */
    struct ibshift_slot *own, **own_end; /* without a shared queue: posted receives, in order */
    uint32_t inlined, plain_bytes;
    uint32_t psn, their_qpn;
    struct ibv_ece ece; /* what it can, then what both can; vendor 0: neither */
    uint8_t my_port, their_port;
};

enum ibshift_connection_state {
    IBSHIFT_CONNECTION_IDLE,
    IBSHIFT_CONNECTION_SHAKING,
    IBSHIFT_CONNECTION_READY,
    IBSHIFT_CONNECTION_DRAINING, /* broken; queue pairs are being flushed */
    IBSHIFT_CONNECTION_DEAD,
};

/* A ring in the receiver's memory that one peer writes. */
struct ibshift_ring {
    struct ibshift_connection *connection; /* NULL: free */
    uint8_t *data;
    uint32_t seed;   /* of its marks, another one for each peer that it is given to */
    bool is_closing; /* the peer was asked to leave it */
    bool is_closed;  /* it has: last is the place behind its last record */
    bool is_ordered; /* data lands in order: the fingerprint is over the header alone */
    uint32_t last;
};

/* What goes to one peer: limits that it has given us and what we have used of them. */
struct ibshift_outbound {
    uint32_t heard; /* of slots and quota, in the last record that was tried */
    uint32_t slots, slots_used;
    uint32_t quota, quota_used;
    uint32_t ring, ring_used; /* in lines */
    uint32_t ring_asked;      /* the limit when we last asked for another */
    uint64_t ring_address;    /* 0: no ring */
    uint32_t ring_key, ring_seed;
    bool is_ordered; /* the ring's records land in order */
    uint64_t word_address;
    uint32_t word_key;
    uint32_t grants; /* notes of kind GRANT */
    struct ibshift_asks asks;
};

/* What comes from one peer: the limits that we have given. */
struct ibshift_inbound {
    uint32_t slots, quota, slots_told, quota_told;
    uint32_t slots_arrived, slots_window, quota_arrived, quota_window;
    uint32_t held;      /* within the quota */
    uint32_t ring_held; /* lines, of records in cells */
    uint32_t recent;    /* messages lately that fit into a ring: the measure for one */
    struct ibshift_ring *ring;
    uint32_t ring_head; /* lines taken, ever, in whatever ring */
    uint32_t ring_told; /* the limit that the peer knows */
    bool ring_asked;    /* the peer wants to know a newer one */
    uint64_t forgone;   /* bytes granted in pieces to messages given up: they may yet come */
};

struct ibshift_connection {
    struct ibshift_net_channel channel; /* first: it stands for the connection */
    struct ibshift_net_verbs *net;
    uint32_t peer;
    uint32_t number; /* its word */
    int status;      /* 0, or why it is broken; written after text */
    uint8_t state;   /* enum ibshift_connection_state */
    uint8_t rails;
    uint8_t path;               /* added to their first port's LID, fixed once there are rails */
    bool must_tell;             /* the word is out of date and could not be written */
    bool is_word_away;          /* the last word is not complete */
    uint32_t word_end;          /* requests of the first rail up to it */
    bool is_ordered;            /* what the peer writes lands in order */
    bool is_asking;             /* the peer has no slot and waits for one */
    bool is_blocked;            /* on the net's list of connections with something to send */
    uint8_t markers;            /* of broken rails, not complete */
    uint32_t my_qpn, their_qpn; /* of the first rail, for describe() */
    struct ibshift_connection *next_asking, *next_blocked;
    struct ibshift_handshake shake;
    struct ibshift_outbound out;
    struct ibshift_inbound in;
    struct ibshift_notes ready;    /* go out as soon as there is a slot: CONTROL, SEND, LONG */
    struct ibshift_notes waiting;  /* SEND: wait for quota too */
    struct ibshift_notes resting;  /* all others: RECV, HELD, LONG, GRANT */
    struct ibshift_notes standing; /* STANDING: nothing waits for them */
    uint64_t drained_by;
    uint64_t alive; /* when the peer was last heard or probed */
    struct ibv_ah *ah;
    struct ibshift_verbs_blob card;
    struct ibshift_rail rail[IBSHIFT_PORTS_MAX];
    char *text;                    /* what broke */
    uint64_t lengths[2];           /* of a message that did not fit: ours and theirs */
    struct ibshift_net_cause root; /* why this side gave up a collective, which broke it; or 0 */
    uint64_t cause;    /* why the peer gave a collective up the last time: peer and errno; or 0 */
    uint64_t began;    /* the handshake */
    uint64_t reported; /* when someone first said that the peer does not answer; or 0 */
    uint32_t reporter;
    uint32_t asked; /* how often others were asked after the peer */
};

/*
 * Records lie in a ring from its end to its beginning: so both sides know where the next one ends,
 * and there are its header and mark, which are written last. A long one that begins in the last
 * lines goes on in the margin below them.
 */
static inline size_t ibshift_ring_end(uint32_t place)
{
    return (size_t)(IBSHIFT_RING_MARGIN + IBSHIFT_RING_LINES - place % IBSHIFT_RING_LINES) *
           IBSHIFT_RING_LINE;
}

static inline uint32_t ibshift_ring_lines(uint32_t length)
{
    return (length + (uint32_t)sizeof(struct ibshift_wire) + IBSHIFT_RING_LINE - 1) /
           IBSHIFT_RING_LINE;
}

/* Unlike what the ring's lines had before: data, or records of another peer. */
static inline uint32_t ibshift_ring_mark(uint32_t place, uint32_t seed)
{
    return place * 0x9e3779b1u ^ seed;
}

/*
 * The last word of a line. Data lands in any order, and may be equal to an older record's in the same
 * place: then a record would count before it is there, and land in the midst of a later one. So
 * what lies in a ring is spoilt before its lines are written again.
 */
static inline void ibshift_ring_spoil(uint8_t *line_end)
{
    uint64_t spoilt = 0xa53c96e7d2184f7bu;

    memcpy(line_end - sizeof(spoilt), &spoilt, sizeof(spoilt));
}

/* A record was taken: what it had below its header's line, which has a mark that no other has. */
static inline void ibshift_nv_record_taken(struct ibshift_connection *c,
                                           const struct ibshift_ring *ring, uint32_t lines)
{
    if (lines > 1 && !ring->is_ordered) {
        uint8_t *at = ring->data + ibshift_ring_end(c->in.ring_head) - IBSHIFT_RING_LINE;
        uint32_t left = lines - 1;
        for (; left >= 4; left -= 4, at -= (size_t)4 * IBSHIFT_RING_LINE) {
            ibshift_ring_spoil(at);
            ibshift_ring_spoil(at - IBSHIFT_RING_LINE);
            ibshift_ring_spoil(at - (size_t)2 * IBSHIFT_RING_LINE);
            ibshift_ring_spoil(at - (size_t)3 * IBSHIFT_RING_LINE);
        }
        for (; left > 0; left--, at -= IBSHIFT_RING_LINE) {
            ibshift_ring_spoil(at);
        }
    }
    c->in.ring_head += lines;
}

/* What the peer may write into its ring: held records keep their lines. Without a ring it is what
   the peer has written, so that the news may come after that of the next ring. */
static inline uint32_t ibshift_ring_limit(const struct ibshift_connection *c)
{
    return c->in.ring_head + (c->in.ring != NULL ? IBSHIFT_RING_LINES - c->in.ring_held : 0);
}

static inline void ibshift_nv_ring_free(struct ibshift_connection *c)
{
    if (c->in.ring != NULL) {
        c->in.ring->connection = NULL;
        c->in.ring = NULL;
    }
}

#endif
