#ifndef IBSHIFT_NET_NODE_PRIVATE_H
#define IBSHIFT_NET_NODE_PRIVATE_H

/* The inside of the node's net. The owner's one-call-at-a-time rule (net.h) covers all of it. */

#include <stdlib.h>
#include <string.h>

#include "net/given_up.h"
#include "net/match.h"
#include "net/node/layout.h"

enum ibshift_node_note_kind {
    IBSHIFT_NODE_RECV,    /* posted; in table rx */
    IBSHIFT_NODE_HELD,    /* came early, perhaps not all of it yet; in table rx */
    IBSHIFT_NODE_OFFERED, /* a long one whose receive is not posted yet; in table rx */
    IBSHIFT_NODE_SEND,    /* in table tx until it has a grant, or needs none */
    IBSHIFT_NODE_EARLY,   /* the grant of a send that is not posted yet; in table tx */
    IBSHIFT_NODE_NEWS,    /* a cell that waits for room */
};

/* One message, or news about one. On one list of its peer, or on the net's list of the ended. */
struct ibshift_node_note {
    struct ibshift_match match; /* first: the tables hold these */
    struct ibshift_node_note *next, *previous;
    struct ibshift_node_list *list;
    struct ibshift_node_peer *peer;
    uint64_t cookie;
    uint8_t *buffer; /* HELD: small, or its own */
    uint64_t length;
    uint64_t done;   /* bytes that have gone, or come */
    uint64_t target; /* SEND, EARLY: where the receiver has it, if the sender may write there; RECV,
                        OFFERED: where it is fetched from */
    uint64_t since;  /* when the grant came */
    uint32_t share;  /* of RECV: by which both sides copy; SEND, EARLY: of the receiver; 0: none */
    int status;
    uint8_t kind;
    uint8_t news;     /* NEWS: of what kind */
    bool is_granted;  /* RECV: the sender was told; SEND: it has told us */
    bool is_direct;   /* RECV: it may be writing there; SEND: the receiver was told where it is */
    bool is_fetched;  /* RECV: the receiver copies; SEND, EARLY: so it is to be told where */
    bool is_streamed; /* RECV: through the ring, though it is long */
    bool is_revoking; /* RECV: over, but for the sender's word that it writes no more; SEND: over,
                         but for ours that the message is there no more */
    bool is_counted;  /* RECV: among the long ones */
    bool is_halved;   /* so each side takes half of what is left */
    bool is_shared;   /* RECV: the sender is to be told of a share */
    uint8_t small[IBSHIFT_NODE_CELL_DATA];
};

struct ibshift_node_list {
    struct ibshift_node_note *first, *last;
};

enum ibshift_node_reach { IBSHIFT_NODE_UNTRIED, IBSHIFT_NODE_CAN, IBSHIFT_NODE_CANNOT };

/*
 * What copies into a ring take that has gone round once: only then has its reader's processor the
 * lines. The median of so many samples counts, and is asked for again as long as it changes nothing,
 * up to so many rounds.
 */
enum { IBSHIFT_NODE_SAMPLES = 15, IBSHIFT_NODE_ROUNDS = 16, IBSHIFT_NODE_LIMIT_LEAST = 4096 };
struct ibshift_node_gauge {
    uint32_t count, rounds;
    double took[IBSHIFT_NODE_SAMPLES]; /* ns for a byte */
    uint64_t last_limit;               /* by the last median */
};

struct ibshift_node_peer {
    struct ibshift_net_channel channel; /* first: it stands for the peer */
    struct ibshift_net_node *net;
    uint32_t number; /* as a peer of the net */
    int status;      /* not 0: why it has failed */
    struct ibshift_node_card card;
    struct ibshift_node_segment theirs; /* base NULL: not opened yet */
    struct ibshift_node_box out, in;
    uint32_t out_cells, out_ring, out_quota; /* what we have used, ever */
    struct {
        uint32_t cells, ring, quota;
    } seen;                         /* of what the peer has taken, when we looked last */
    uint32_t in_cells, in_ring;     /* what we have taken, ever */
    uint32_t in_quota, in_returned; /* what has come, and what is no more held */
    uint32_t longs;                 /* long receives that are posted */
    uint64_t
        at_once; /* bytes: longer ones are offered. A quarter of a ring, less where that is dear */
    struct ibshift_node_gauge gauge;
    uint8_t reach;                    /* by the kernel's copy; enum ibshift_node_reach */
    struct ibshift_node_list ready;   /* SEND, NEWS: go as soon as there is room */
    struct ibshift_node_list waiting; /* SEND: for quota */
    struct ibshift_node_list helping; /* SEND: offered, and the receiver has told of a share */
    struct ibshift_node_list resting; /* all others */
    uint32_t shares;                  /* bits: places that are taken */
    uint16_t share_turns[IBSHIFT_NODE_SHARES];
    struct ibshift_net_cause cause; /* why it gave a collective up the last time; status 0: never */
    char text[160];                 /* what broke */
};

struct ibshift_net_node {
    struct ibshift_net net;
    struct ibshift_node_options options;
    struct ibshift_node_card card;
    struct ibshift_node_segment own;
    struct ibshift_node_peer **peers; /* by place; NULL: not met yet */
    struct {
        uint32_t peer; /* 1 + its number; 0: free */
        uint32_t place;
    } * places; /* by number, open addressing */
    uint32_t place_mask;
    uint32_t *met; /* places of those that were met */
    uint32_t met_count;
    struct ibshift_node_peer *last; /* that was looked up; may be NULL */
    struct ibshift_match_table rx, tx;
    struct ibshift_given_up given_up;
    uint32_t longs; /* of all peers */
    struct {
        double call, byte;
    } kernel; /* ns of its copy; byte 0: not measured yet */
    struct ibshift_node_list ended;
    struct ibshift_node_note *free_notes;
    bool has_said_copy;
    /* What a peer has written before it ended counts: set when the net opens, by those who read. */
    void (*take)(struct ibshift_node_peer *peer);
    struct ibshift_node_stats stats;
};

static inline struct ibshift_net_node *ibshift_node(struct ibshift_net *net)
{
    return (struct ibshift_net_node *)net;
}

/* What is written before is seen by the others before what is written after, and nothing is read ahead of it. */
static inline void ibshift_nn_fence(void)
{
#ifdef __SANITIZE_THREAD__
    static _Atomic int word; /* the thread sanitizer knows no fences */

    atomic_fetch_add(&word, 0);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Up to so many bytes a message is short, on its way to the owner of a ring of that size. */
static inline uint64_t ibshift_node_short(uint32_t ring)
{
    return ring / 4;
}

/* Whether a message goes into the peer's ring as soon as it is sent; others are offered, or asked for. */
static inline bool ibshift_nn_goes_at_once(const struct ibshift_node_peer *peer, uint64_t length)
{
    return length <= ibshift_node_short(peer->card.ring) &&
           (length <= peer->at_once || peer->reach == IBSHIFT_NODE_CANNOT);
}

/* Whether the kernel takes less time for a short message than the ring does. */
static inline bool ibshift_nn_is_ring_dear(const struct ibshift_node_peer *peer)
{
    return peer->at_once < ibshift_node_short(peer->net->card.ring);
}

/* What a held message takes of the quota, which is as large as the ring. */
static inline uint32_t ibshift_node_cost(uint64_t length)
{
    return (uint32_t)length + 64;
}

/* Whether the peer's box has so many cells left of those that may be written. */
static inline bool ibshift_node_has_cells_of(struct ibshift_node_peer *peer, uint32_t all,
                                             uint32_t wanted)
{
    if (peer->out_cells - peer->seen.cells > all - wanted) {
        peer->seen.cells = atomic_load_explicit(&peer->out.taken->cells, memory_order_acquire);
    }
    return peer->out_cells - peer->seen.cells <= all - wanted;
}

/* The last one is for the word that all is over: a peer that fetches must not miss it. */
static inline bool ibshift_node_has_cells(struct ibshift_node_peer *peer, uint32_t wanted)
{
    return ibshift_node_has_cells_of(peer, IBSHIFT_NODE_CELLS - 1, wanted);
}

/* The next cell of the peer's box, or NULL: full. */
static inline struct ibshift_node_cell *ibshift_node_next_cell(struct ibshift_node_peer *peer)
{
    return ibshift_node_has_cells(peer, 1) ? &peer->out.cells[peer->out_cells % IBSHIFT_NODE_CELLS]
                                           : NULL;
}

/* What else is in the cell has been written. */
static inline void ibshift_node_publish(struct ibshift_node_peer *peer,
                                        struct ibshift_node_cell *cell, enum ibshift_node_kind kind,
                                        uint8_t flags, uint32_t size,
                                        const struct ibshift_net_key *key)
{
    cell->kind = (uint8_t)kind;
    cell->flags = flags;
    cell->size = (uint16_t)size;
    cell->key = *key;
    atomic_store_explicit(&cell->turn, ++peer->out_cells, memory_order_release);
}

/* Whether the next cell of the own box is there. */
static inline bool ibshift_node_has_cell(const struct ibshift_node_peer *peer)
{
    const struct ibshift_node_cell *cell = &peer->in.cells[peer->in_cells % IBSHIFT_NODE_CELLS];

    return atomic_load_explicit(&cell->turn, memory_order_acquire) == peer->in_cells + 1;
}

/* Takes it: what lies there may change at any time. */
static inline void ibshift_node_take_cell(struct ibshift_node_peer *peer,
                                          struct ibshift_node_cell *cell)
{
    memcpy(cell, &peer->in.cells[peer->in_cells % IBSHIFT_NODE_CELLS], sizeof(*cell));
    peer->in_cells++;
    if (peer->in_cells % (IBSHIFT_NODE_CELLS / 4) == 0) {
        atomic_store_explicit(&peer->in.taken->cells, peer->in_cells, memory_order_release);
    }
}

static inline struct ibshift_node_note *ibshift_nn_find(const struct ibshift_match_table *table,
                                                        const struct ibshift_node_peer *peer,
                                                        const struct ibshift_net_key *key)
{
    return table->count == 0
               ? NULL
               : (struct ibshift_node_note *)ibshift_match_find(table, peer->number, key);
}

/* Of a message that both sides copy: what is taken of it, and its turn in that word. */
static inline _Atomic uint64_t *ibshift_nn_taken(const struct ibshift_node_note *note)
{
    const struct ibshift_node_box *box =
        note->kind == IBSHIFT_NODE_RECV ? &note->peer->in : &note->peer->out;

    return &box->shares->taken[note->share % IBSHIFT_NODE_SHARES];
}

static inline uint64_t ibshift_nn_turn(const struct ibshift_node_note *note)
{
    return (uint64_t)(note->share >> 8) << IBSHIFT_NODE_SHARE_BITS;
}

static inline bool ibshift_nn_is_posted(const struct ibshift_node_note *note)
{
    return note->kind == IBSHIFT_NODE_SEND || note->kind == IBSHIFT_NODE_RECV;
}

/* Of one that was held. */
static inline void ibshift_nn_drop_buffer(struct ibshift_node_note *note)
{
    if (note->buffer != note->small) {
        free(note->buffer);
    }
}

static inline void ibshift_nn_give_back(struct ibshift_node_peer *peer, uint64_t length)
{
    peer->in_returned += ibshift_node_cost(length);
    atomic_store_explicit(&peer->in.taken->quota, peer->in_returned, memory_order_release);
}

/* peer.c: notes, peers, news to them */
/* For a message that is posted; in no table and on no list yet. NULL: no memory. */
struct ibshift_node_note *ibshift_nn_note_post(struct ibshift_node_peer *peer,
                                               enum ibshift_node_note_kind kind,
                                               const struct ibshift_net_message *m);
/* For what a peer has told, or is to be told. NULL: no memory, and the peer has failed. */
struct ibshift_node_note *ibshift_nn_remember(struct ibshift_node_peer *peer,
                                              enum ibshift_node_note_kind kind,
                                              const struct ibshift_net_key *key, uint64_t length);
void ibshift_nn_note_free(struct ibshift_node_note *note);
void ibshift_nn_note_end(struct ibshift_node_note *note, int status);
void ibshift_nn_note_move(struct ibshift_node_list *list, struct ibshift_node_note *note);
/* Nothing more of a receive is taken. Whether the sender has taken something: it may be writing it. */
bool ibshift_nn_close_share(struct ibshift_node_note *recv);
void ibshift_nn_enter(struct ibshift_node_note *note);
void ibshift_nn_drop_held(struct ibshift_node_note *note);
void ibshift_nn_each(struct ibshift_node_peer *peer,
                     void (*visit)(struct ibshift_node_note *note, const void *context),
                     const void *context);
struct ibshift_node_peer *ibshift_nn_peer(struct ibshift_net_node *nn, uint32_t number);
int ibshift_nn_meet(struct ibshift_node_peer *peer);
bool ibshift_nn_can_copy(struct ibshift_node_peer *peer);
void ibshift_nn_limit(struct ibshift_node_peer *peer, uint64_t most);
void ibshift_nn_gauge_add(struct ibshift_node_peer *peer, double took);
void ibshift_nn_break(struct ibshift_node_peer *peer, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool ibshift_nn_check_alive(struct ibshift_node_peer *peer);
void ibshift_nn_fill(struct ibshift_node_peer *peer, struct ibshift_node_cell *cell,
                     enum ibshift_node_kind kind, const struct ibshift_net_key *key,
                     uint64_t length, uint64_t address);
int ibshift_nn_put_news(struct ibshift_node_peer *peer, enum ibshift_node_kind kind,
                        const struct ibshift_net_key *key, uint64_t length, uint64_t address);
void ibshift_nn_tell(struct ibshift_node_peer *peer, enum ibshift_node_kind kind,
                     const struct ibshift_net_key *key, uint64_t length, uint64_t address);
void ibshift_nn_mismatch(struct ibshift_node_peer *peer, const struct ibshift_net_key *key,
                         uint64_t here, uint64_t there);

/* out.c: messages to peers, and what peers say of them */
int ibshift_nn_send(struct ibshift_net *net, const struct ibshift_net_message *message);
bool ibshift_nn_try_send(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         const void *buffer, size_t length);
void ibshift_nn_flush(struct ibshift_node_peer *peer);
void ibshift_nn_grant_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell);
void ibshift_nn_ungrant_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell);
void ibshift_nn_revoke_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell);
void ibshift_nn_taken_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell);

/* recv.c: receives, and messages that are held */
int ibshift_nn_recv(struct ibshift_net *net, const struct ibshift_net_message *message);
/* The first bytes of a message that may have to be held. False: the sender has overrun us. */
bool ibshift_nn_count_quota(struct ibshift_node_peer *peer, uint64_t length);
/* A note for a message that comes early; it counts against the quota. NULL: the peer has failed. */
struct ibshift_node_note *ibshift_nn_hold(struct ibshift_node_peer *peer,
                                          const struct ibshift_net_key *key, uint64_t length);
/* The message that was held, or the part of it that has come, is the receive's now. */
int ibshift_nn_take_held(struct ibshift_node_note *held, const struct ibshift_net_message *m);
/* A receive of what was expected in the ring, and is offered. */
void ibshift_nn_take_short_offer(struct ibshift_node_note *recv);
/* Messages that are waited for, and that the sender may now have no quota for. */
void ibshift_nn_grant_what_is_stuck(struct ibshift_node_peer *peer);

/* copy.c: what the kernel copies */
/* The next part of a receive that was offered. 0 or 1: it is over, or waits for its sender; -EAGAIN: goes on later. */
int ibshift_nn_fetch(struct ibshift_node_peer *peer, struct ibshift_node_note *recv);
/* target 0: no share. */
void ibshift_nn_begin_to_help(struct ibshift_node_note *send, uint64_t target, uint32_t share);
void ibshift_nn_stop_helping(struct ibshift_node_note *send);
/* The next part of the first one of those that this side helps with. */
void ibshift_nn_help(struct ibshift_node_peer *peer);

/* in.c: all that peers write into our boxes */
void ibshift_nn_take(struct ibshift_node_peer *peer);
bool ibshift_nn_try_recv(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         void *buffer, size_t length);

#endif
