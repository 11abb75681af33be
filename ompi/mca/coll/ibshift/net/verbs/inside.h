#ifndef IBSHIFT_NET_VERBS_INSIDE_H
#define IBSHIFT_NET_VERBS_INSIDE_H

/*
 * The inside of the verbs net: what an endpoint has, and what its files do for each other. The
 * owner's one-call-at-a-time rule (net.h) covers all of it. Files are listed from the bottom up: each
 * calls only those above it in the list.
 */

#include "net/given_up.h"
#include "net/verbs/connection.h"
#include "net/verbs/credit.h"

struct ibshift_net_verbs;
struct ibshift_cast;
struct ibshift_cast_buffer;

/* Queues of one device. */
struct ibshift_lane {
    struct ibshift_device *device;
    struct ibv_cq *cq;
    struct ibv_srq *srq;              /* NULL: each queue pair has receives of its own */
    struct ibv_mr *mr;                /* the net's own memory */
    uint32_t missing;                 /* receives to post */
    struct ibshift_match_table rails; /* by queue pair number */
};

enum { IBSHIFT_PEER_CHUNK = 4096, IBSHIFT_GRANTS = 1 << 16 };

/* A short record as it is sent: what is the same for all of them is set once. */
struct ibshift_nv_plain {
    struct ibv_send_wr request;
    struct ibv_sge sge;
    _Alignas(8) uint8_t record[IBSHIFT_PLAIN_BYTES]; /* at its end: payload, header */
};

/* How messages that waited in a queue go out: told when the endpoint opens, by those who know. */
struct ibshift_nv_senders {
    int (*send_note)(struct ibshift_note *note);
    int (*write)(struct ibshift_note *note);
    int (*repair)(struct ibshift_note *note);
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
    uint32_t slot_count, slot_size, receives;
    uint32_t slot_stock, quota_stock, copy_stock; /* not given to anyone */
    uint32_t copy_count;                          /* as many copies may be on their way */
    struct ibshift_word *words;                   /* written by the peers */
    uint32_t word_count;
    struct ibshift_ring *rings;
    uint32_t rings_used; /* places, of which some may be free again */
    uint8_t *ud_memory;
    struct ibshift_note *free_notes;

    /* peers: chunks, so that describe() may look while another thread adds one */
    struct ibshift_connection **chunks[IBSHIFT_PEER_CHUNK];
    struct ibshift_connection **connections;
    uint32_t connection_count, connection_room;
    uint32_t shaking, draining; /* connections in that state */
    struct ibshift_connection *asking, **asking_end;
    struct ibshift_connection *blocked, **blocked_end;

    /* messages */
    struct ibshift_match_table rx, tx, standing;
    const struct ibshift_net_message *wanted; /* by try_recv() now; NULL: nothing is, or it came */
    struct ibshift_note **grants;             /* by place */
    uint16_t *grant_ages;
    uint32_t *free_grants, free_grant_count;
    struct ibshift_net_event *events; /* a ring */
    uint32_t event_mask, event_first, event_last;
    struct ibshift_given_up given_up;

    struct ibshift_cast *casts; /* multicast groups, a list */
    uint32_t ud_sends, ud_next; /* in flight; where the next one is written */
    bool is_ud_shut;            /* the adapter refused to open the queue pair again */
    uint32_t strangers;         /* datagrams that came from elsewhere than they say */
    uint32_t requests;          /* posted and not retired, all rails */
    uint32_t cq_room;
    uint32_t queued;           /* messages whose end only a completion queue tells */
    uint64_t ungranted;        /* as in net.h */
    uint32_t in_pieces;        /* messages, ever: they take the rails in turn */
    uint32_t pieced;           /* messages in pieces that are posted now */
    uint32_t looks;            /* at the rings */
    uint32_t polls;            /* of the completion queues */
    uint64_t time;             /* as of the last slow round */
    uint64_t next_tick;        /* of the handshakes */
    uint64_t next_walk;        /* over multicast groups, and connections where it is their time */
    uint64_t next_full;        /* walk over all connections */
    struct ibv_send_wr record; /* of the record that is being sent, zero beyond what each sets */
    struct ibshift_nv_plain plain;
    uint32_t noise;
    bool has_said_copy;
    struct ibshift_net_verbs_stats stats;
};

static inline struct ibshift_net_verbs *ibshift_nv(struct ibshift_net *net)
{
    return (struct ibshift_net_verbs *)net;
}

static inline struct ibshift_connection *ibshift_nv_peer_known(const struct ibshift_net_verbs *nv,
                                                               uint32_t peer)
{
    if (peer / IBSHIFT_PEER_CHUNK >= IBSHIFT_PEER_CHUNK) {
        return NULL;
    }
    struct ibshift_connection **chunk =
        __atomic_load_n(&nv->chunks[peer / IBSHIFT_PEER_CHUNK], __ATOMIC_ACQUIRE);
    return chunk == NULL ? NULL
                         : __atomic_load_n(&chunk[peer % IBSHIFT_PEER_CHUNK], __ATOMIC_ACQUIRE);
}

static inline struct ibshift_note *ibshift_note_find(const struct ibshift_match_table *table,
                                                     const struct ibshift_connection *c,
                                                     const struct ibshift_net_key *key)
{
    return (struct ibshift_note *)ibshift_match_find(table, c->peer, key);
}

/* memory.c: slots, notes, events, registration */
struct ibv_mr *ibshift_nv_register_relaxed(struct ibv_pd *pd, void *base, size_t length);
/* Registers unless mem covers it already; the note then owns the region. */
int ibshift_nv_cover(struct ibshift_note *note, struct ibshift_net_mem *mem,
                     struct ibshift_region **region);
struct ibshift_slot *ibshift_nv_slot_take(struct ibshift_net_verbs *nv);
void ibshift_nv_slot_free(struct ibshift_net_verbs *nv, struct ibshift_slot *slot);
void ibshift_nv_receives_post(struct ibshift_net_verbs *nv, struct ibshift_lane *lane);
struct ibshift_note *ibshift_nv_note_new(struct ibshift_connection *c, uint8_t kind,
                                         const struct ibshift_net_key *key);
/* For a message that is posted; in no table and on no list yet. NULL: no memory. */
struct ibshift_note *ibshift_nv_note_post(struct ibshift_connection *c, uint8_t kind,
                                          const struct ibshift_net_message *m);
/* Of those lists on which something happens: not the standing ones. A visit may end its note. */
void ibshift_nv_each(struct ibshift_connection *c,
                     void (*visit)(struct ibshift_note *note, void *context), void *context);
void ibshift_nv_event(struct ibshift_net_verbs *nv, uint64_t cookie, uint32_t peer, int status);
void ibshift_nv_note_end(struct ibshift_note *note, int status);
/* Enters it into the table of its kind, and at the end of the list. */
void ibshift_nv_note_enter(struct ibshift_note *note, struct ibshift_notes *list);
void ibshift_note_append(struct ibshift_notes *list, struct ibshift_note *note);
void ibshift_note_move(struct ibshift_notes *list, struct ibshift_note *note);
int ibshift_nv_region_get(struct ibshift_net_verbs *nv, void *base, size_t length,
                          struct ibshift_region **region);
void ibshift_nv_region_put(struct ibshift_net_verbs *nv, struct ibshift_region *region);

/* datagram.c: what endpoints tell each other without a connection */
typedef void ibshift_hello_came_t(struct ibshift_net_verbs *nv, const struct ibshift_hello *hello,
                                  const struct ibshift_verbs_source *source);
int ibshift_nv_ud_open(struct ibshift_net_verbs *nv);
void ibshift_nv_ud_close(struct ibshift_net_verbs *nv);
void ibshift_nv_ud_send(struct ibshift_connection *c, const struct ibshift_hello *hello);
void ibshift_nv_ud_poll(struct ibshift_net_verbs *nv, ibshift_hello_came_t *came);
void ibshift_nv_hello(struct ibshift_connection *c, uint8_t kind);
void ibshift_nv_bye(struct ibshift_connection *c);
void ibshift_nv_address(const struct ibshift_connection *c, int my_port, int their_port,
                        unsigned path, struct ibv_ah_attr *ah);

/* queue.c: queue pairs, and how they break */
int ibshift_nv_rails_create(struct ibshift_connection *c);
int ibshift_nv_rails_connect(struct ibshift_connection *c, const struct ibshift_hello *hello);
bool ibshift_nv_is_second(const struct ibshift_connection *c, const struct ibshift_hello *hello);
void ibshift_nv_rails_destroy(struct ibshift_connection *c);
/* One more message from the peer; the receive for it is there before the peer knows. */
void ibshift_nv_slot_give(struct ibshift_connection *c);
void ibshift_rail_received(struct ibshift_rail *rail);
struct ibshift_rail *ibshift_lane_rail(const struct ibshift_lane *lane, uint32_t qpn);
int ibshift_rail_post(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                      struct ibv_send_wr *wr, bool is_signaled);
void ibshift_rail_retire(struct ibshift_net_verbs *nv, struct ibshift_rail *rail);
static inline uint32_t ibshift_rail_room(const struct ibshift_net_verbs *nv,
                                         const struct ibshift_rail *rail)
{
    uint32_t taken = rail->posted - rail->retired;
    return nv->requests >= nv->cq_room ? 0 : nv->options.queue - taken;
}
void ibshift_rail_refused(struct ibshift_net_verbs *nv, struct ibshift_rail *rail, int error);
/* Before plain_until, when it is inlined and nobody wants its completion. False: the connection
   broke. */
static inline bool ibshift_rail_post_plain(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                                           struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    rail->posted++;
    nv->requests++;
    int rc = ibv_post_send(rail->qp, wr, &bad);
    if (rc != 0) {
        ibshift_rail_refused(nv, rail, rc);
    }
    return rc == 0;
}
__attribute__((format(printf, 3, 4))) void ibshift_nv_break(struct ibshift_connection *c,
                                                            int status, const char *format, ...);
void ibshift_nv_break_no_memory(struct ibshift_connection *c);
int ibshift_nv_mismatch(struct ibshift_connection *c, const struct ibshift_net_key *key,
                        uint64_t ours, uint64_t theirs);
void ibshift_nv_drain_poll(struct ibshift_net_verbs *nv);

/* out.c: a message over the ring or into a posted receive */
int ibshift_nv_put(struct ibshift_connection *c, struct ibshift_wire *head, const void *payload,
                   bool may_ring);
int ibshift_nv_post_copy(struct ibshift_connection *c, struct ibv_send_wr *wr, const void *data,
                         uint32_t length);
int ibshift_nv_post_write(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                          struct ibv_send_wr *wr, bool is_signaled);
int ibshift_nv_put_piece(struct ibshift_note *note);
void ibshift_nv_tell(struct ibshift_connection *c);
void ibshift_nv_tell_nothing(struct ibshift_connection *c);
void ibshift_nv_flush(struct ibshift_connection *c);
void ibshift_nv_control(struct ibshift_connection *c, const struct ibshift_net_key *key,
                        enum ibshift_wire_kind kind, const struct ibshift_wire_grant *grant);
/* The peer's grant, or its wish, for a message that is not posted yet. */
void ibshift_nv_grant_keep(struct ibshift_connection *c, const struct ibshift_net_key *key,
                           const struct ibshift_wire_grant *grant, bool is_pulled);
bool ibshift_nv_has_slot(struct ibshift_connection *c);
void ibshift_nv_blocked_poll(struct ibshift_net_verbs *nv);

/* connect.c: connections */
struct ibshift_connection *ibshift_nv_peer(struct ibshift_net_verbs *nv, uint32_t peer);
void ibshift_nv_connect(struct ibshift_connection *c);
void ibshift_nv_wireup_poll(struct ibshift_net_verbs *nv);
void ibshift_nv_heard(struct ibshift_connection *c);
void ibshift_nv_cause_came(struct ibshift_connection *c, const struct ibshift_net_cause *why);
void ibshift_nv_reported(struct ibshift_net *net, uint32_t peer, uint32_t reporter);
void ibshift_nv_serve(struct ibshift_net_verbs *nv);

/* ring.c: rings that we give, and what we tell of our limits */
void ibshift_nv_ring_wanted(struct ibshift_connection *c);
void ibshift_nv_ring_settle(struct ibshift_connection *c);
void ibshift_nv_ring_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                          const struct ibshift_wire_grant *body);
void ibshift_nv_rings_balance(struct ibshift_net_verbs *nv);
/* Held messages were matched or dropped: tells their sender when it should know. */
void ibshift_nv_held_ended(struct ibshift_connection *c);

/* long.c: long messages */
int ibshift_nv_send_long(struct ibshift_connection *c, const struct ibshift_net_message *m);
void ibshift_nv_grant(struct ibshift_note *recv, struct ibshift_net_mem *mem);
void ibshift_nv_grant_again(struct ibshift_note *recv);
void ibshift_nv_granted(struct ibshift_connection *c, const struct ibshift_wire *head,
                        const struct ibshift_wire_grant *body);
int ibshift_nv_write(struct ibshift_note *note);

/* ... and grants that are good for more than one message; NULL: the send waits for one */
const struct ibshift_note *ibshift_nv_standing_grant(const struct ibshift_connection *c,
                                                     const struct ibshift_net_message *m);
bool ibshift_nv_may_stand(const struct ibshift_net_verbs *nv);
void ibshift_nv_stand(struct ibshift_note *recv);
void ibshift_nv_standing_keep(const struct ibshift_note *send);
/* As recv() in net.h; -ENOENT: none stands for this one. */
int ibshift_nv_standing_recv(struct ibshift_connection *c, const struct ibshift_net_message *m);
void ibshift_nv_standing_came(struct ibshift_note *note, uint32_t parts);
void ibshift_nv_standing_forget(struct ibshift_net_verbs *nv, uint32_t comm);
void ibshift_nv_standing_revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing,
                                const uint32_t *seq);

/* short.c: short messages, and posted receives of all lengths */
int ibshift_nv_send_short(struct ibshift_connection *c, const struct ibshift_net_message *m);
int ibshift_nv_send_note(struct ibshift_note *note);
bool ibshift_nv_try_send_rarely(struct ibshift_net_channel *channel, uint64_t comm_seq,
                                uint32_t tag, const void *buffer, size_t length);
bool ibshift_nv_try_held(struct ibshift_connection *c, const struct ibshift_net_message *m);
int ibshift_nv_recv(struct ibshift_connection *c, const struct ibshift_net_message *m);
/* Returns whether the slot is kept. */
bool ibshift_nv_data_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                          const uint8_t *payload, struct ibshift_slot *slot);

/* ../cast/: messages of multicast groups (cast.h) */
int ibshift_nv_cast_send(struct ibshift_net_verbs *nv, const struct ibshift_net_message *m);
int ibshift_nv_cast_repair(struct ibshift_note *note); /* of kind CONTROL: what it names */
int ibshift_nv_cast_recv(struct ibshift_connection *c, const struct ibshift_net_message *m);
void ibshift_nv_cast_completed(struct ibshift_cast_buffer *buffer, const struct ibv_wc *wc);
void ibshift_nv_cast_repair_came(struct ibshift_connection *c, const struct ibshift_wire *wire,
                                 const uint8_t *payload);
void ibshift_nv_cast_miss_came(struct ibshift_connection *c, const struct ibshift_wire *wire,
                               const struct ibshift_wire_grant *body);
void ibshift_nv_cast_have_came(struct ibshift_connection *c, const struct ibshift_wire *wire,
                               const struct ibshift_wire_grant *body);
/* Now and then: asks for what is late. Returns when it has to be called again. */
uint64_t ibshift_nv_casts_look(struct ibshift_net_verbs *nv); /* net/cast/open.c */
void ibshift_nv_casts_shut(struct ibshift_net_verbs *nv);

/* arrive.c */
/* head is a copy that the peer cannot change any more, payload is not. slot: where it is, or NULL
 * when it is in a ring. Returns whether the slot is kept. */
bool ibshift_nv_arrive(struct ibshift_connection *c, const struct ibshift_wire *head,
                       const uint8_t *payload, struct ibshift_slot *slot);
int ibshift_nv_rings_poll(struct ibshift_net_verbs *nv);
int ibshift_nv_ring_poll(struct ibshift_net_verbs *nv, struct ibshift_ring *ring);

/* progress.c: what the devices report */
int ibshift_nv_poll(struct ibshift_net *net, struct ibshift_net_event *events, int max);
bool ibshift_nv_try_recv_rarely(struct ibshift_net_channel *channel, uint64_t comm_seq,
                                uint32_t tag, void *buffer, size_t length);
void ibshift_nv_let_sends_leave(struct ibshift_net_verbs *nv);
int ibshift_nv_async_open(struct ibshift_net_verbs *nv);

/* open.c: 0, or what failed, in words too */
int ibshift_nv_open(struct ibshift_net_verbs *nv, const char **what);
void ibshift_nv_shut(struct ibshift_net_verbs *nv);

/* try.c: channels */
bool ibshift_nv_try_send(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         const void *buffer, size_t length);
bool ibshift_nv_try_recv(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         void *buffer, size_t length);

#endif
