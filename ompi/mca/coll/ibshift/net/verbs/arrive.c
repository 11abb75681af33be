/* What comes over a connection, through a ring or a posted receive, and what it tells. */
#include <errno.h>
#include <string.h>

#include "net/verbs/inside.h"

enum {
    RECORDS_PER_POLL = 8,
    ENDED_POLLS = 256 /* a rank that asks again has polled a few times as often */
};

/* A message of the collective for which the peer has no other side. */
struct empty {
    const struct ibshift_net_key *key;
    struct ibshift_note *note; /* NULL: there is none */
};

static void pull_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                      const struct ibshift_wire_grant *body)
{
    const struct ibshift_net_key *key = &head->key;
    struct ibshift_note *note = ibshift_note_find(&c->net->tx, c, key);

    if (note == NULL) {
        if (!ibshift_given_up_is_over(&c->net->net, c->peer, key)) {
            ibshift_nv_grant_keep(c, key, body, true);
        }
    } else if (note->kind == IBSHIFT_NOTE_SEND && note->length == body->length) {
        ibshift_match_remove(&note->match);
        note->is_pulled = true;
        ibshift_note_move(&c->ready, note);
        ibshift_nv_flush(c);
    } else {
        (void)ibshift_nv_mismatch(c, key, note->length, body->length);
    }
}

static void unpull_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                        const struct ibshift_wire_grant *body)
{
    const struct ibshift_net_key *key = &head->key;
    (void)body;
    struct ibshift_note *note = ibshift_note_find(&c->net->tx, c, key);

    if (note != NULL && note->kind == IBSHIFT_NOTE_GRANT && note->is_pulled) {
        ibshift_nv_note_end(note, 0);
    }
}

static void probe_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                       const struct ibshift_wire_grant *body)
{
    const struct ibshift_net_key *key = &head->key;
    struct ibshift_note *note = ibshift_note_find(&c->net->rx, c, key);

    if (note == NULL) {
        (void)ibshift_given_up_unlike(&c->net->net, c->peer, key);
    } else if (note->length != body->length) {
        (void)ibshift_nv_mismatch(c, key, note->length, body->length);
    } else if (note->is_again) {
        ibshift_nv_grant_again(note);
    }
}

struct aborted {
    struct ibshift_net_key key;
    bool is_granted; /* a buffer is, to the peer: only a break takes that back */
};

static void abort_note(struct ibshift_note *n, void *context)
{
    struct aborted *aborted = context;

    if (!ibshift_net_is_of(&n->match.key, aborted->key.comm, aborted->key.seq)) {
        return;
    }
    if (n->kind == IBSHIFT_NOTE_RECV && ibshift_note_is_with_device(n)) {
        aborted->is_granted = true;
    } else if (n->kind == IBSHIFT_NOTE_RECV || n->kind == IBSHIFT_NOTE_SEND ||
               (n->kind == IBSHIFT_NOTE_LONG && n->done == 0)) {
        ibshift_nv_note_end(n, -ECONNABORTED);
    }
}

/* The peer has cancelled its own messages before it says so, on the same queue pairs, so nothing of them
   follows. */
static void abort_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                       const struct ibshift_wire_grant *body)
{
    const struct ibshift_net_cause why = {.peer = body->id,
                                          .status = -(int32_t)(body->pieces & 0xffff)};
    struct aborted aborted = {.key = head->key};

    ibshift_nv_cause_came(c, &why);
    if (ibshift_given_up_is_over(&c->net->net, c->peer, &head->key)) {
        return;
    }
    ibshift_given_up_add_by(c->net->net.given_up, c->peer, &head->key);
    ibshift_nv_each(c, abort_note, &aborted);
    if (aborted.is_granted) {
        c->root = why; /* for the peer's other collectives, which end with the connection */
        ibshift_nv_break(c, -ECONNABORTED,
                         "it gave up collective %u on communicator %u, whose buffer it may write",
                         head->key.seq, ibshift_net_comm(head->key.comm));
    }
}

static void ask_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                     const struct ibshift_wire_grant *body)
{
    (void)body;
    ibshift_given_up_asked(&c->net->net, c->peer, &head->key);
    if (ibshift_given_up_has_ended(&c->net->net, &head->key)) {
        ibshift_nv_control(c, &head->key, IBSHIFT_WIRE_ENDED, NULL);
    }
}

/* The message that has been said to have no other side most polls ago. */
static void find_empty(struct ibshift_note *n, void *context)
{
    struct empty *empty = context;

    if (ibshift_net_is_of(&n->match.key, empty->key->comm, empty->key->seq) && !n->is_cast &&
        (n->kind == IBSHIFT_NOTE_RECV || (n->kind == IBSHIFT_NOTE_LONG && !n->is_granted))) {
        uint32_t polls = n->connection->net->polls;

        n->ended = n->ended == 0 ? (polls - 1) | 1 : n->ended;
        if (empty->note == NULL || polls - n->ended > polls - empty->note->ended) {
            empty->note = n;
        }
    }
}

/* What the peer has sent may have been overtaken by this word. It is not by the next one, after polls that would have brought it. */
static void ended_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                       const struct ibshift_wire_grant *body)
{
    struct empty empty = {.key = &head->key};

    (void)body;
    ibshift_nv_each(c, find_empty, &empty);
    if (empty.note != NULL && c->net->polls - empty.note->ended > ENDED_POLLS) {
        (void)ibshift_nv_mismatch(c, &empty.note->match.key, empty.note->length, 0);
    }
}

static void (*const control_handlers[])(struct ibshift_connection *c,
                                        const struct ibshift_wire *head,
                                        const struct ibshift_wire_grant *body) = {
    [IBSHIFT_WIRE_GRANT] = ibshift_nv_granted,
    [IBSHIFT_WIRE_PULL] = pull_came,
    [IBSHIFT_WIRE_UNPULL] = unpull_came,
    [IBSHIFT_WIRE_PROBE] = probe_came,
    [IBSHIFT_WIRE_RING] = ibshift_nv_ring_came,
    [IBSHIFT_WIRE_ABORT] = abort_came,
    [IBSHIFT_WIRE_ASK] = ask_came,
    [IBSHIFT_WIRE_ENDED] = ended_came,
    [IBSHIFT_WIRE_CAST_MISS] = ibshift_nv_cast_miss_came,
    [IBSHIFT_WIRE_CAST_HAVE] = ibshift_nv_cast_have_came,
};

static void control_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                         const uint8_t *payload)
{
    struct ibshift_wire_grant body;

    if (head->length != sizeof(body) ||
        head->kind >= sizeof(control_handlers) / sizeof(control_handlers[0]) ||
        control_handlers[head->kind] == NULL) {
        ibshift_nv_break(c, -EIO, "it sent a message of unknown kind %u, %u bytes", head->kind,
                         head->length);
        return;
    }
    memcpy(&body, payload, sizeof(body));
    control_handlers[head->kind](c, head, &body);
}

/* Of a message that was given up here, or by the peer, whose word may overtake its pieces: no more
   than was granted to such messages. */
static bool is_forgone(struct ibshift_connection *c, uint32_t length)
{
    if (length == 0 || length > c->in.forgone) {
        return false;
    }
    c->in.forgone -= length;
    return true;
}

static void piece_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                       const uint8_t *payload)
{
    struct ibshift_note *note = ibshift_note_find(&c->net->rx, c, &head->key);
    size_t offset = (size_t)head->offset * c->net->net.max_eager; /* they come in order */

    if (note != NULL &&
        (note->kind != IBSHIFT_NOTE_RECV || (note->to.pieces & IBSHIFT_GRANT_PIECES) == 0 ||
         note->grant != head->mark)) {
        note = NULL;
    }
    if (note == NULL && is_forgone(c, head->length)) {
        return;
    }
    if (note == NULL || offset != note->done || head->length > note->length - offset) {
        ibshift_nv_break(c, -EIO, "it sent a piece of a message that it had no grant for");
        return;
    }
    memcpy((uint8_t *)note->buffer + offset, payload, head->length);
    note->done += head->length;
    if (note->done == note->length) {
        ibshift_nv_note_end(note, 0);
    }
}

bool ibshift_nv_arrive(struct ibshift_connection *c, const struct ibshift_wire *head,
                       const uint8_t *payload, struct ibshift_slot *slot)
{
    if (head->length > c->net->net.max_eager) {
        ibshift_nv_break(c, -EIO, "it sent a short message of %u bytes: the limit is %zu",
                         head->length, c->net->net.max_eager);
        return false;
    }
    ibshift_limit_advance(&c->out.slots, head->slots);
    ibshift_limit_advance(&c->out.quota, head->quota);
    if (c->out.ring_address != 0) {
        ibshift_limit_advance(&c->out.ring, head->ring);
    }
    if (head->length <= IBSHIFT_RING_PAYLOAD && ++c->in.recent == IBSHIFT_RING_HOT) {
        ibshift_nv_ring_wanted(c);
    }
    if (head->kind == IBSHIFT_WIRE_DATA) {
        return ibshift_nv_data_came(c, head, payload, slot);
    }
    if (head->kind == IBSHIFT_WIRE_PIECE) {
        piece_came(c, head, payload);
    } else if (head->kind == IBSHIFT_WIRE_CAST_REPAIR) {
        ibshift_nv_cast_repair_came(c, head, payload);
    } else {
        control_came(c, head, payload);
    }
    return false;
}

/* The next record of a ring, if all of it is there: what is behind its data, or NULL. */
__attribute__((always_inline)) static inline const uint8_t *
next_record(const struct ibshift_ring *ring, uint32_t number, struct ibshift_wire_words *head)
{
    uint8_t *end = ring->data + ibshift_ring_end(number);
    uint32_t *mark = (uint32_t *)(void *)(end - sizeof(*mark));

    if (__atomic_load_n(mark, __ATOMIC_ACQUIRE) != ibshift_ring_mark(number, ring->seed)) {
        return NULL;
    }
    for (int i = 0; i < 4; i++) { /* once: a second look could see another word */
        head->of[i] = __atomic_load_n((const uint64_t *)(const void *)(end - sizeof(*head)) + i,
                                      __ATOMIC_RELAXED);
    }
    uint32_t length = (uint32_t)(head->of[1] >> 32);
    const uint8_t *header = end - sizeof(*head);
    if (length > IBSHIFT_RING_PAYLOAD ||
        (uint32_t)head->of[3] !=
            ibshift_wire_check(head, header - length, ring->is_ordered ? 0 : length)) {
        return NULL; /* the mark has overtaken the rest */
    }
    /* What was checked is what is copied: processors keep the order of reads of one place. */
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return header;
}

/* Takes the next record if it is there; returns whether it was. */
static bool take_record(struct ibshift_connection *c)
{
    const struct ibshift_ring *ring = c->in.ring; /* the record may be the word that it is left */
    struct ibshift_wire_words words;
    const uint8_t *end = next_record(ring, c->in.ring_head, &words);
    struct ibshift_wire head;

    if (end == NULL) {
        return false;
    }
    memcpy(&head, &words, sizeof(head));
    (void)ibshift_nv_arrive(c, &head, end - head.length, NULL);
    ibshift_nv_record_taken(c, ring, ibshift_ring_lines(head.length));
    c->in.ring_asked |= (head.flags & IBSHIFT_WIRE_TELL) != 0;
    return c->status == 0;
}

/* No further than to the message that is wanted. */
int ibshift_nv_ring_poll(struct ibshift_net_verbs *nv, struct ibshift_ring *ring)
{
    const struct ibshift_net_message *wanted = nv->wanted;
    struct ibshift_connection *c = ring->connection;
    int taken = 0;

    /* A record may be the word that the peer has left the ring. */
    while (taken < RECORDS_PER_POLL && ring->connection == c && nv->wanted == wanted &&
           take_record(c)) {
        taken++;
    }
    if (taken > 0 && c->status == 0 && (c->in.ring_asked || ring->is_closing)) {
        ibshift_nv_ring_settle(c);
    }
    return taken;
}

/* Returns how many messages were there. */
int ibshift_nv_rings_poll(struct ibshift_net_verbs *nv)
{
    int taken = 0;

    for (uint32_t i = 0; i < nv->rings_used; i++) {
        struct ibshift_ring *ring = &nv->rings[i];
        if (ring->connection != NULL && ring->connection->status == 0) {
            taken += ibshift_nv_ring_poll(nv, ring);
        }
    }
    return taken;
}
