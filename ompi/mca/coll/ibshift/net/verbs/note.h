#ifndef IBSHIFT_NET_VERBS_NOTE_H
#define IBSHIFT_NET_VERBS_NOTE_H

/* The record of one message, from its posting or its coming to its end. */

#include <string.h>

#include "net/match.h"
#include "net/verbs/verbs.h"
#include "net/verbs/wire.h"

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
    IBSHIFT_WR_EARLY,  /* struct ibshift_note: all but its last bytes are written */
    IBSHIFT_WR_PIECE,  /* struct ibshift_note: a piece is written, and the next may go */
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
    bool is_in_table;
    bool is_pulled;  /* RECV: asked for by name; SEND: needs no quota */
    bool is_granted; /* RECV: the peer may write; LONG: so may we */
    bool is_cancelled;
    bool is_in_cell;   /* HELD: came through a ring */
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
    struct ibshift_region *region; /* to be put back at the end, or NULL */
    struct ibshift_wire_grant to;  /* LONG, GRANT, CONTROL */
    union {                        /* by kind */
        uint32_t grant;            /* RECV: its place in the table of grants */
        struct ibshift_slot *slot; /* HELD: where it lies */
        struct {                   /* LONG */
            uint64_t since;        /* when it began to wait */
            size_t early;          /* hints of net.h */
            size_t piece; /* with the device at once, and then no other part of it; 0: all */
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
        return note->is_granted;
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

#endif
