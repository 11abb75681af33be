#ifndef IBSHIFT_NET_VERBS_PRIVATE_H
#define IBSHIFT_NET_VERBS_PRIVATE_H

/*
 * The inside of the verbs net. The owner's one-call-at-a-time rule (net.h) covers all of it.
 *
 * Two kinds of credit keep a receiver from being overrun, whatever the number of its peers:
 *   slots  a message that takes a receive of the shared queue needs one. They come back as soon
 *          as the message was looked at, whether anyone waited for it or not, so nothing that
 *          waits for slots waits for the program.
 *   quota  a short message that nobody may be waiting for yet needs one more: the right to be
 *          held by the receiver. It comes back when the message is matched. A receiver whose
 *          peer has spent its quota asks for the messages that it waits for by name (PULL), and
 *          those need no quota.
 * A message through a ring needs neither: the receiver has a cell for each of the ring's records,
 * and while a record is held, its place in the ring is not given back.
 */

#include "net/given_up.h"
#include "net/verbs/credit.h"
#include "net/verbs/device.h"
#include "net/verbs/hello.h"
#include "net/match.h"
#include "net/verbs/wire.h"

#include <string.h>

struct ibshift_connection;
struct ibshift_net_verbs;

/* A piece of registered memory: a receive of the shared queue, a held message, or a copy on its
   way out. */
struct ibshift_slot {
    struct ibshift_slot *next;
    uint8_t *data;
};

/* What a work request id points to: the low bits say which. */
enum ibshift_wr_kind {
    IBSHIFT_WR_PLAIN,  /* nothing to do at completion */
    IBSHIFT_WR_COPY,   /* struct ibshift_slot: free it */
    IBSHIFT_WR_WRITE,  /* struct ibshift_note: a part of a long message is written */
    IBSHIFT_WR_RECV,   /* struct ibshift_slot of the shared queue */
    IBSHIFT_WR_EMPTY,  /* a receive without memory, of a device other than the first */
    IBSHIFT_WR_MARKER, /* the last request of a broken queue pair */
    IBSHIFT_WR_EARLY,  /* struct ibshift_note: all but its last bytes are written */
    IBSHIFT_WR_PIECE,  /* struct ibshift_note: a piece is written, and the next may go */
    IBSHIFT_WR_KINDS = 8,
};

enum ibshift_note_kind {
    IBSHIFT_NOTE_RECV,    /* posted, in table rx */
    IBSHIFT_NOTE_HELD,    /* came early, in table rx */
    IBSHIFT_NOTE_SEND,    /* short: waits in a queue */
    IBSHIFT_NOTE_LONG,    /* long: waits for its grant (table tx), or is being written */
    IBSHIFT_NOTE_GRANT,   /* the peer's receive for a send that is not posted yet, in table tx */
    IBSHIFT_NOTE_CONTROL, /* waits in a queue; owned by nobody else */
};

/* One message, or news about one. On exactly one list of its connection. */
struct ibshift_note {
    struct ibshift_match match; /* first: the tables point here */
    struct ibshift_note *next, *previous;
    struct ibshift_notes *list;
    struct ibshift_connection *connection;
    uint8_t kind;      /* enum ibshift_note_kind */
    uint8_t wire_kind; /* CONTROL: enum ibshift_wire_kind */
    uint8_t is_in_table;
    uint8_t is_pulled;  /* RECV: asked for by name; SEND: needs no quota */
    uint8_t is_granted; /* RECV: the peer may write; LONG: so may we */
    uint8_t is_cancelled;
    uint8_t is_in_cell; /* HELD: came through a ring */
    uint8_t is_copied;  /* LONG, RECV: in pieces through slots instead of being written */
    uint8_t parts;      /* LONG: writes that are not complete; RECV: parts that have come */
    uint8_t rail;       /* LONG: its first part's */
    uint32_t grant;     /* RECV: its place in the table of grants */
    void *buffer;
    size_t length;
    size_t done; /* LONG: bytes posted; RECV in pieces: bytes that have come */
    uint64_t cookie;
    uint64_t since; /* LONG: when it began to wait, slow: to be written */
    size_t early;   /* LONG: hints of net.h */
    uint64_t spread;
    size_t piece; /* LONG: with the device at once, and then no other part of it; 0: all */
    struct ibshift_slot *slot;             /* HELD */
    struct ibshift_net_mem *mem;           /* LONG: the caller's */
    struct ibshift_region *region;         /* to be put back at the end, or NULL */
    uint32_t local_key[IBSHIFT_PORTS_MAX]; /* LONG: one a rail */
    struct ibshift_wire_grant to;          /* LONG, GRANT, CONTROL */
};

struct ibshift_notes {
    struct ibshift_note *first, *last;
};

/* One queue pair of a connection; completion queues find it by number. */
struct ibshift_rail {
    struct ibshift_connection *connection;
    struct ibshift_lane *lane;
    struct ibv_qp *qp;
    uint32_t posted, retired; /* requests, ever */
    uint32_t signaled;        /* posted at the last signaled one */
    uint32_t *marks;          /* posted at each signaled one that is not complete */
    uint32_t first_mark, last_mark;
    uint32_t inlined;
    uint32_t psn, their_qpn;
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
    uint8_t is_closing; /* the peer was asked to leave it */
    uint8_t is_closed;  /* it has: last is the number of the last record */
    uint32_t last;
};

/* What goes to one peer: limits that it has given us and what we have used of them. */
struct ibshift_outbound {
    uint32_t slots, slots_used;
    uint32_t quota, quota_used;
    uint32_t ring, ring_used;
    uint32_t ring_asked;   /* the limit when we last asked for another */
    uint64_t ring_address; /* 0: no ring */
    uint32_t ring_key;
    uint64_t word_address;
    uint32_t word_key;
    uint32_t grants; /* notes of kind GRANT */
    uint64_t asked;  /* when we last asked for a slot */
};

/* What comes from one peer: the limits that we have given. */
struct ibshift_inbound {
    uint32_t slots, slots_told, slots_arrived, slots_window;
    uint32_t quota, quota_told, quota_arrived, quota_window;
    uint32_t held;      /* within the quota */
    uint32_t ring_held; /* in cells */
    uint32_t recent;    /* messages lately that fit into a ring: the measure for one */
    struct ibshift_ring *ring;
    uint32_t ring_head; /* records taken, ever, in whatever ring */
    uint32_t ring_told; /* the limit that the peer knows */
    bool ring_asked;    /* the peer wants to know a newer one */
};

struct ibshift_connection {
    uint32_t peer;
    uint32_t number; /* its word */
    int status;      /* 0, or why it is broken; written after text */
    uint8_t state;   /* enum ibshift_connection_state */
    uint8_t rails;
    uint8_t path;               /* added to their first port's LID, fixed once there are rails */
    uint8_t must_tell;          /* the word is out of date and could not be written */
    uint8_t is_asking;          /* the peer has no slot and waits for one */
    uint8_t is_blocked;         /* on the net's list of connections with something to send */
    uint8_t markers;            /* of broken rails, not complete */
    uint32_t my_qpn, their_qpn; /* of the first rail, for describe() */
    struct ibshift_connection *next_asking, *next_blocked;
    struct ibshift_handshake shake;
    struct ibshift_outbound out;
    struct ibshift_inbound in;
    struct ibshift_notes ready;   /* go out as soon as there is a slot: CONTROL, SEND, LONG */
    struct ibshift_notes waiting; /* SEND: wait for quota too */
    struct ibshift_notes slow;    /* LONG: go out by the clock */
    struct ibshift_notes resting; /* all others: RECV, HELD, LONG, GRANT */
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

/* Queues of one device. */
struct ibshift_lane {
    struct ibshift_device *device;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr;           /* the net's own memory */
    uint32_t missing;            /* receives to post */
    struct ibshift_rail **rails; /* by queue pair number, open addressing */
    uint32_t rail_mask, rail_count;
};

enum { IBSHIFT_PEER_CHUNK = 4096, IBSHIFT_GRANTS = 1 << 16 };

/* How messages that waited in a queue go out: told when the endpoint opens, by those who know. */
struct ibshift_nv_senders {
    int (*send_note)(struct ibshift_net_verbs *nv, struct ibshift_note *note);
    int (*write)(struct ibshift_net_verbs *nv, struct ibshift_note *note);
    void (*write_slowly)(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
};

struct ibshift_net_verbs {
    struct ibshift_net net;
    struct ibshift_verbs *verbs;
    struct ibshift_net_verbs_options options;
    const struct ibshift_nv_senders *senders;
    struct ibshift_lane lanes[IBSHIFT_PORTS_MAX];
    int lane_count;

    /* memory */
    uint8_t *arena;
    size_t arena_size;
    struct ibshift_slot *slots, *free_slots;
    struct ibshift_slot *cells, *free_cells; /* of RING_PAYLOAD bytes, not registered */
    uint8_t *cell_memory;
    uint32_t slot_count, slot_size, receives;
    uint32_t slot_stock, quota_stock, copy_stock; /* not given to anyone */
    struct ibshift_word *words;                   /* written by the peers */
    uint32_t word_count;
    struct ibshift_ring *rings;
    uint32_t rings_used; /* places, of which some may be free again */
    uint8_t *ud_memory;
    struct ibshift_note *free_notes;
    struct ibshift_note_block *note_blocks;

    /* peers: chunks, so that describe() may look while another thread adds one */
    struct ibshift_connection **chunks[IBSHIFT_PEER_CHUNK];
    struct ibshift_connection **connections;
    uint32_t connection_count, connection_room;
    uint32_t shaking, draining; /* connections in that state */
    struct ibshift_connection *asking, **asking_end;
    struct ibshift_connection *blocked, **blocked_end;

    /* messages */
    struct ibshift_match_table rx, tx;
    const struct ibshift_net_message *wanted; /* by try_recv() now; NULL: nothing is, or it came */
    struct ibshift_note **grants;             /* by place */
    uint16_t *grant_ages;
    uint32_t *free_grants, free_grant_count;
    struct ibshift_net_event *events; /* a ring */
    uint32_t event_mask, event_first, event_last;
    struct ibshift_given_up given_up;

    uint32_t ud_sends;  /* in flight */
    uint32_t strangers; /* datagrams that came from elsewhere than they say */
    uint32_t ud_next;
    uint32_t requests; /* posted and not retired, all rails */
    uint32_t cq_room;
    uint32_t queued;    /* messages whose end only a completion queue tells */
    uint32_t in_pieces; /* messages, ever: they take the rails in turn */
    uint32_t looks;     /* at the rings */
    uint32_t polls;     /* of the completion queues */
    uint64_t time;      /* as of the last slow round */
    uint64_t next_tick; /* of the handshakes */
    uint64_t next_walk; /* over all connections */
    uint32_t noise;
    uint8_t has_said_copy;
    struct ibshift_net_verbs_stats stats;
};

static inline struct ibshift_net_verbs *ibshift_nv(struct ibshift_net *net)
{
    return (struct ibshift_net_verbs *)net;
}

/* A message without data may come without a buffer, which memcpy must not be given. */
static inline void ibshift_nv_copy(void *to, const void *from, size_t length)
{
    if (length > 0) {
        memcpy(to, from, length);
    }
}

static inline uint64_t ibshift_wr_id(void *object, enum ibshift_wr_kind kind)
{
    return (uint64_t)(uintptr_t)object | kind;
}

static inline struct ibshift_note *ibshift_note_find(const struct ibshift_match_table *table,
                                                     const struct ibshift_connection *c,
                                                     const struct ibshift_net_key *key)
{
    return (struct ibshift_note *)ibshift_match_find(table, c->peer, key);
}

/* Whether the device may still read or write the message's buffer. */
static inline bool ibshift_note_is_with_device(const struct ibshift_note *note)
{
    if (note->kind == IBSHIFT_NOTE_RECV) {
        return note->is_granted;
    }
    return note->kind == IBSHIFT_NOTE_LONG && note->done > 0 && !note->is_copied;
}

static inline void ibshift_nv_ring_free(struct ibshift_connection *c)
{
    if (c->in.ring != NULL) {
        c->in.ring->connection = NULL;
        c->in.ring = NULL;
    }
}

/* memory.c: slots, notes, events, registration */
int ibshift_nv_memory_open(struct ibshift_net_verbs *nv);
void ibshift_nv_memory_close(struct ibshift_net_verbs *nv);
struct ibshift_slot *ibshift_nv_slot_take(struct ibshift_net_verbs *nv);
struct ibshift_slot *ibshift_nv_cell_take(struct ibshift_net_verbs *nv);
void ibshift_nv_slot_free(struct ibshift_net_verbs *nv, struct ibshift_slot *slot);
void ibshift_nv_receives_post(struct ibshift_net_verbs *nv, struct ibshift_lane *lane);
struct ibshift_note *ibshift_nv_note_new(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                                         uint8_t kind, const struct ibshift_net_key *key);
void ibshift_nv_event(struct ibshift_net_verbs *nv, uint64_t cookie, uint32_t peer, int status);
void ibshift_nv_note_end(struct ibshift_net_verbs *nv, struct ibshift_note *note, int status);
/* Enters it into the table of its kind, and at the end of the list. */
void ibshift_nv_note_enter(struct ibshift_net_verbs *nv, struct ibshift_note *note,
                           struct ibshift_notes *list);
void ibshift_note_append(struct ibshift_notes *list, struct ibshift_note *note);
void ibshift_note_move(struct ibshift_notes *list, struct ibshift_note *note);
int ibshift_nv_region_get(struct ibshift_net_verbs *nv, void *base, size_t length,
                          struct ibshift_region **region);
int ibshift_nv_mem_register(struct ibshift_net *net, void *base, size_t length,
                            struct ibshift_net_mem **mem);
void ibshift_nv_mem_release(struct ibshift_net *net, struct ibshift_net_mem *mem);

/* datagram.c: what endpoints tell each other without a connection */
typedef void ibshift_hello_came_t(struct ibshift_net_verbs *nv, const struct ibshift_hello *hello,
                                  const struct ibshift_verbs_source *source);
int ibshift_nv_ud_open(struct ibshift_net_verbs *nv);
void ibshift_nv_ud_close(struct ibshift_net_verbs *nv);
void ibshift_nv_ud_send(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                        const struct ibshift_hello *hello);
void ibshift_nv_ud_poll(struct ibshift_net_verbs *nv, ibshift_hello_came_t *came);
void ibshift_nv_hello(struct ibshift_net_verbs *nv, struct ibshift_connection *c, uint8_t kind);
void ibshift_nv_bye(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_ask(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_address(const struct ibshift_net_verbs *nv, const struct ibshift_connection *c,
                        int my_port, int their_port, struct ibv_ah_attr *ah);

/* connect.c: connections */
struct ibshift_connection *ibshift_nv_peer(struct ibshift_net_verbs *nv, uint32_t peer);
struct ibshift_connection *ibshift_nv_peer_known(const struct ibshift_net_verbs *nv, uint32_t peer);
void ibshift_nv_connect(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_wireup_poll(struct ibshift_net_verbs *nv);
void ibshift_nv_heard(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_cause_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                           const struct ibshift_net_cause *why);
void ibshift_nv_serve(struct ibshift_net_verbs *nv);

/* queue.c: queue pairs, how they break, and what devices report */
int ibshift_nv_rails_create(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
int ibshift_nv_rails_connect(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                             const struct ibshift_hello *hello);
void ibshift_nv_rails_destroy(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
struct ibshift_rail *ibshift_lane_rail(const struct ibshift_lane *lane, uint32_t qpn);
int ibshift_rail_post(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                      struct ibv_send_wr *wr, int is_signaled);
void ibshift_rail_retire(struct ibshift_net_verbs *nv, struct ibshift_rail *rail);
static inline uint32_t ibshift_rail_room(const struct ibshift_net_verbs *nv,
                                         const struct ibshift_rail *rail)
{
    uint32_t taken = rail->posted - rail->retired;
    return nv->requests >= nv->cq_room ? 0 : nv->options.queue - taken;
}
__attribute__((format(printf, 4, 5))) void ibshift_nv_break(struct ibshift_net_verbs *nv,
                                                            struct ibshift_connection *c,
                                                            int status, const char *format, ...);
void ibshift_nv_break_no_memory(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
int ibshift_nv_mismatch(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                        const struct ibshift_net_key *key, uint64_t ours, uint64_t theirs);
void ibshift_nv_drain_poll(struct ibshift_net_verbs *nv);
void ibshift_nv_wc_error(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibv_wc *wc);
int ibshift_nv_async_open(struct ibshift_net_verbs *nv);
void ibshift_nv_async_poll(struct ibshift_net_verbs *nv);

/* out.c: a message over the ring or the shared queue */
int ibshift_nv_put(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                   struct ibshift_wire *head, const void *payload, int may_ring);
void ibshift_nv_tell(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_flush(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_control(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                        const struct ibshift_net_key *key, enum ibshift_wire_kind kind,
                        const struct ibshift_wire_grant *grant);
int ibshift_nv_has_slot(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_blocked_poll(struct ibshift_net_verbs *nv);

/* ring.c: rings that we give, and what we tell of our limits */
void ibshift_nv_ring_wanted(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_ring_settle(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_ring_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                          const struct ibshift_wire_grant *body);
void ibshift_nv_rings_balance(struct ibshift_net_verbs *nv);
/* Held messages were matched or dropped: tells their sender when it should know. */
void ibshift_nv_held_ended(struct ibshift_net_verbs *nv, struct ibshift_connection *c);

/* short.c: short messages */
int ibshift_nv_send_short(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                          const struct ibshift_net_message *m);
int ibshift_nv_send_note(struct ibshift_net_verbs *nv, struct ibshift_note *note);
bool ibshift_nv_try_send(struct ibshift_net *net, const struct ibshift_net_message *m);
bool ibshift_nv_try_held(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibshift_net_message *m);
int ibshift_nv_recv(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                    const struct ibshift_net_message *m);
/* head is a copy that the peer cannot change any more, payload is not. slot: where it is, or NULL
 * when it is in a ring. Returns 1 when the slot is kept. */
int ibshift_nv_arrive(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                      const struct ibshift_wire *head, const uint8_t *payload,
                      struct ibshift_slot *slot);
int ibshift_nv_rings_poll(struct ibshift_net_verbs *nv);
int ibshift_nv_ring_poll(struct ibshift_net_verbs *nv, struct ibshift_ring *ring);

/* long.c: long messages, what pacing asks */
int ibshift_nv_send_long(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibshift_net_message *m);
void ibshift_nv_grant(struct ibshift_net_verbs *nv, struct ibshift_note *recv,
                      struct ibshift_net_mem *mem);
void ibshift_nv_granted(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                        const struct ibshift_net_key *key, const struct ibshift_wire_grant *grant);
void ibshift_nv_probe(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
int ibshift_nv_write(struct ibshift_net_verbs *nv, struct ibshift_note *note);
void ibshift_nv_write_slowly(struct ibshift_net_verbs *nv, struct ibshift_connection *c);
void ibshift_nv_written(struct ibshift_net_verbs *nv, struct ibshift_note *note,
                        enum ibshift_wr_kind kind);
void ibshift_nv_part_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                          uint32_t immediate);
void ibshift_nv_piece_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                           const struct ibshift_wire *head, const uint8_t *payload);
bool ibshift_nv_is_granted(struct ibshift_net *net, uint32_t peer,
                           const struct ibshift_net_key *key, uint64_t *note);
void ibshift_nv_leave(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key);
void ibshift_nv_leave_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                           const struct ibshift_net_key *key);

/* fail.c: collectives given up, peers in words */
void ibshift_nv_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq);
void ibshift_nv_abort(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq);
void ibshift_nv_forget(struct ibshift_net *net, uint32_t comm);
void ibshift_nv_abort_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                           const struct ibshift_net_key *key, const struct ibshift_net_cause *why);
void ibshift_nv_give_up(struct ibshift_net *net, uint32_t comm,
                        const struct ibshift_net_cause *why);
bool ibshift_nv_has_given_up(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why);
void ibshift_nv_enter(struct ibshift_net *net, uint32_t comm);
void ibshift_nv_ask_after(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq);
void ibshift_nv_ask_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibshift_net_key *key);
void ibshift_nv_describe(struct ibshift_net *net, uint32_t peer, char *text, size_t size);

#endif
