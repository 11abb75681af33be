/* Short messages: sent at once when the receiver has room, held there when nobody waits yet. */
#include <errno.h>
#include <string.h>

#include "net/verbs/inside.h"

enum { RECORDS_PER_POLL = 8 };

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

static int put_data(struct ibshift_connection *c, const struct ibshift_net_key *key,
                    const void *buffer, size_t length, bool is_pulled)
{
    struct ibshift_wire head = {.key = *key,
                                .kind = IBSHIFT_WIRE_DATA,
                                .length = (uint32_t)length,
                                .flags = is_pulled ? 0 : IBSHIFT_WIRE_UNASKED};
    int rc = ibshift_nv_put(c, &head, buffer, true);

    if (rc == 0) {
        c->net->stats.bytes += length;
    }
    return rc;
}

/* Takes the peer's PULL for this message, if it has come. -EMSGSIZE: for another length, or it is a
   grant. */
static int take_pull(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_match *found =
        c->out.grants > 0 ? ibshift_match_find(&c->net->tx, c->peer, &m->key) : NULL;

    if (found == NULL) {
        return 0;
    }
    struct ibshift_note *note = (struct ibshift_note *)found;
    bool is_pull = note->is_pulled;
    uint64_t theirs = note->to.length;
    ibshift_nv_note_end(note, 0);
    return is_pull && theirs == m->length ? 1 : ibshift_nv_mismatch(c, &m->key, m->length, theirs);
}

int ibshift_nv_send_short(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    int pulled = take_pull(c, m);

    if (pulled < 0) {
        return pulled;
    }
    if (c->state == IBSHIFT_CONNECTION_READY && c->ready.first == NULL &&
        (pulled || c->waiting.first == NULL)) {
        int rc = put_data(c, &m->key, m->buffer, m->length, pulled);
        if (rc != -EAGAIN) {
            return rc == 0 ? IBSHIFT_NET_DONE : c->status;
        }
    }
    struct ibshift_note *note = ibshift_nv_note_new(c, IBSHIFT_NOTE_SEND, &m->key);
    if (note == NULL) {
        return -ENOMEM;
    }
    note->buffer = m->buffer;
    note->length = m->length;
    note->cookie = m->cookie;
    note->is_pulled = pulled > 0;
    if (pulled) {
        ibshift_note_append(&c->ready, note);
    } else {
        ibshift_nv_note_enter(note, &c->waiting);
    }
    ibshift_nv_flush(c);
    ibshift_nv_connect(c);
    return IBSHIFT_NET_PENDING;
}

/* Of a message that is tried, where ibshift_nv_try_send() is not enough. */
bool ibshift_nv_try_send_rarely(struct ibshift_net_channel *channel, uint64_t comm_seq,
                                uint32_t tag, const void *buffer, size_t length)
{
    struct ibshift_connection *c = (struct ibshift_connection *)channel;
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_net_message m = ibshift_net_tried(c->peer, comm_seq, tag, buffer, length);

    return c->state == IBSHIFT_CONNECTION_READY && c->status == 0 && c->ready.first == NULL &&
           c->waiting.first == NULL && c->out.grants == 0 &&
           !ibshift_given_up_by(nv->net.given_up, c->peer, &m.key) &&
           put_data(c, &m.key, buffer, length, false) == 0;
}

int ibshift_nv_send_note(struct ibshift_note *note)
{
    int rc =
        put_data(note->connection, &note->match.key, note->buffer, note->length, note->is_pulled);
    if (rc == 0) {
        ibshift_nv_note_end(note, 0);
    }
    return rc;
}

static void pull(struct ibshift_note *recv)
{
    struct ibshift_net_verbs *nv = recv->connection->net;
    struct ibshift_wire_grant body = {.length = recv->length};

    recv->is_pulled = true;
    nv->stats.pulled++;
    ibshift_nv_control(recv->connection, &recv->match.key, IBSHIFT_WIRE_PULL, &body);
}

static bool is_pullable(const struct ibshift_note *note)
{
    const struct ibshift_net_verbs *nv = note->connection->net;

    return note->kind == IBSHIFT_NOTE_RECV && !note->is_pulled && note->length <= nv->net.max_eager;
}

/* The store has no more room for this peer: ask by name for all that is waited for. */
static void pull_all(struct ibshift_connection *c)
{
    struct ibshift_note *next;

    for (struct ibshift_note *n = c->resting.first; n != NULL && c->status == 0; n = next) {
        next = n->next;
        if (is_pullable(n)) {
            pull(n);
        }
    }
}

static int take_held(struct ibshift_connection *c, struct ibshift_note *held,
                     const struct ibshift_net_message *m)
{
    if (held->length != m->length) {
        return ibshift_nv_mismatch(c, &m->key, m->length, held->length);
    }
    ibshift_nv_copy(m->buffer, held->buffer, held->length);
    ibshift_nv_note_end(held, 0);
    ibshift_nv_held_ended(c);
    return IBSHIFT_NET_DONE;
}

bool ibshift_nv_try_held(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_note *held =
        c->in.held + c->in.ring_held > 0 ? ibshift_note_find(&c->net->rx, c, &m->key) : NULL;

    return held != NULL && held->kind == IBSHIFT_NOTE_HELD && held->length == m->length &&
           take_held(c, held, m) == IBSHIFT_NET_DONE;
}

/* It may come back with less quota than it has now. */
static bool is_going(const struct ibshift_connection *c)
{
    return c->state == IBSHIFT_CONNECTION_CLOSING || c->state == IBSHIFT_CONNECTION_CLOSED;
}

int ibshift_nv_recv(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_match *held =
        c->in.held + c->in.ring_held > 0 ? ibshift_match_find(&nv->rx, c->peer, &m->key) : NULL;

    if (held != NULL) {
        return take_held(c, (struct ibshift_note *)held, m);
    }
    if (m->length > nv->net.max_eager && m->standing != 0) {
        struct ibshift_note *granted = ibshift_nv_standing(c, true, m->standing, &m->key);
        if (granted != NULL) {
            return ibshift_nv_standing_recv(granted, m);
        }
    }
    if (m->length > nv->net.max_eager && nv->free_grant_count == 0) {
        return -EAGAIN;
    }
    struct ibshift_note *note = ibshift_nv_note_new(c, IBSHIFT_NOTE_RECV, &m->key);
    if (note == NULL) {
        return -ENOMEM;
    }
    note->buffer = m->buffer;
    note->length = m->length;
    note->cookie = m->cookie;
    nv->queued += m->length > IBSHIFT_RING_PAYLOAD;
    ibshift_nv_note_enter(note, &c->resting);
    ibshift_nv_connect(c);
    if (c->status != 0) {
        return IBSHIFT_NET_PENDING; /* connecting failed at once, the event is there */
    }
    if (m->length > nv->net.max_eager) {
        note->to.hint = m->hint;
        note->standing = ibshift_nv_may_stand(nv) ? m->standing : 0;
        ibshift_nv_grant(note, m->mem);
    } else if (c->in.held >= c->in.quota_window || is_going(c)) {
        pull(note);
    }
    return IBSHIFT_NET_PENDING;
}

/* It came through the ring. */
static void hold_record(struct ibshift_connection *c, struct ibshift_note *note, void *cell,
                        const uint8_t *payload)
{
    note->buffer = cell;
    note->is_in_cell = true;
    ibshift_nv_copy(cell, payload, note->length);
    c->in.ring_held += ibshift_ring_lines((uint32_t)note->length);
}

static void hold_slot(struct ibshift_connection *c, struct ibshift_note *note,
                      struct ibshift_slot *slot)
{
    note->slot = slot;
    note->buffer = slot->data + sizeof(struct ibshift_wire);
    if (++c->in.held >= c->in.quota_window) {
        pull_all(c);
    }
}

/* Nobody waits for it yet. Returns whether the slot is kept. */
static bool hold(struct ibshift_connection *c, const struct ibshift_wire *head,
                 const uint8_t *payload, struct ibshift_slot *slot)
{
    bool has_room = slot != NULL
                        ? c->in.held < c->in.quota_window
                        : c->in.ring_held + ibshift_ring_lines(head->length) <= IBSHIFT_RING_LINES;

    if (!(head->flags & IBSHIFT_WIRE_UNASKED) || !has_room) {
        ibshift_nv_break(c, -EIO, "it sent a message that nobody had asked for");
        return false;
    }
    void *cell = slot == NULL ? ibshift_nv_cell_take(c->net, head->length) : NULL;
    struct ibshift_note *note =
        slot != NULL || cell != NULL ? ibshift_nv_note_new(c, IBSHIFT_NOTE_HELD, &head->key) : NULL;
    if (note == NULL) {
        ibshift_nv_break_no_memory(c); /* the cell stays with its block */
        return false;
    }
    note->length = head->length;
    ibshift_nv_note_enter(note, &c->resting);
    c->net->stats.held++;
    if (slot == NULL) {
        hold_record(c, note, cell, payload);
        return false;
    }
    hold_slot(c, note, slot);
    return true;
}

/* It was looked for, not posted. */
static bool take_wanted(const struct ibshift_connection *c, const struct ibshift_wire *head,
                        const uint8_t *payload)
{
    const struct ibshift_net_message *m = c->net->wanted;

    if (m->peer != c->peer || memcmp(&m->key, &head->key, sizeof(head->key)) != 0 ||
        m->length != head->length || !(head->flags & IBSHIFT_WIRE_UNASKED)) {
        return false;
    }
    ibshift_nv_copy(m->buffer, payload, head->length);
    c->net->wanted = NULL;
    return true;
}

static bool data_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                      const uint8_t *payload, struct ibshift_slot *slot)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_match *found = ibshift_match_find(&nv->rx, c->peer, &head->key);
    struct ibshift_note *note = (struct ibshift_note *)found;
    bool is_unasked = (head->flags & IBSHIFT_WIRE_UNASKED) != 0;
    bool has_quota = is_unasked && slot != NULL;

    c->in.quota_arrived += has_quota;
    if (note == NULL && nv->wanted != NULL && take_wanted(c, head, payload)) {
        if (has_quota) {
            c->in.quota++;
            ibshift_nv_held_ended(c);
        }
        return false;
    }
    if (note != NULL && (note->kind != IBSHIFT_NOTE_RECV || note->length != head->length)) {
        (void)ibshift_nv_mismatch(c, &head->key, note->length, head->length);
        return false;
    }
    if (note == NULL && !ibshift_given_up_is_over(&nv->net, c->peer, &head->key)) {
        return hold(c, head, payload, slot);
    }
    if (note != NULL) {
        bool is_crossed = note->is_pulled && is_unasked;
        ibshift_nv_copy(note->buffer, payload, head->length);
        ibshift_nv_note_end(note, 0);
        if (is_crossed) {
            ibshift_nv_control(c, &head->key, IBSHIFT_WIRE_UNPULL, NULL);
        }
    }
    if (has_quota) {
        c->in.quota++;
        ibshift_nv_held_ended(c);
    }
    return false;
}

static void pull_came(struct ibshift_connection *c, const struct ibshift_net_key *key,
                      uint64_t length)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_note *note = ibshift_note_find(&nv->tx, c, key);

    if (note == NULL) {
        if (ibshift_given_up_is_over(&nv->net, c->peer, key)) {
            return;
        }
        note = ibshift_nv_note_new(c, IBSHIFT_NOTE_GRANT, key);
        if (note == NULL) {
            ibshift_nv_break_no_memory(c);
            return;
        }
        note->is_pulled = true;
        note->to.length = length;
        ibshift_nv_note_enter(note, &c->resting);
        c->out.grants++;
    } else if (note->kind == IBSHIFT_NOTE_SEND && note->length == length) {
        ibshift_match_remove(&nv->tx, &note->match);
        note->is_in_table = false;
        note->is_pulled = true;
        ibshift_note_move(&c->ready, note);
        ibshift_nv_flush(c);
    } else {
        (void)ibshift_nv_mismatch(c, key, note->length, length);
    }
}

static void unpull_came(struct ibshift_connection *c, const struct ibshift_net_key *key)
{
    struct ibshift_note *note = ibshift_note_find(&c->net->tx, c, key);

    if (note != NULL && note->kind == IBSHIFT_NOTE_GRANT && note->is_pulled) {
        ibshift_nv_note_end(note, 0);
    }
}

static void probe_came(struct ibshift_connection *c, const struct ibshift_net_key *key,
                       uint64_t length)
{
    struct ibshift_note *note = ibshift_note_find(&c->net->rx, c, key);

    if (note == NULL) {
        (void)ibshift_given_up_unlike(&c->net->net, c->peer, key);
    } else if (note->length != length) {
        (void)ibshift_nv_mismatch(c, key, note->length, length);
    } else if (note->is_again) {
        ibshift_nv_grant_again(note);
    }
}

/* Returns whether a buffer is still granted to the peer: only a break takes that back. */
static bool abort_list(struct ibshift_net_verbs *nv, struct ibshift_notes *list,
                       const struct ibshift_net_key *key)
{
    struct ibshift_note *next;
    bool is_granted = false;

    for (struct ibshift_note *n = list->first; n != NULL; n = next) {
        next = n->next;
        if (!ibshift_net_is_of(&n->match.key, key->comm, key->seq)) {
            continue;
        }
        if (n->kind == IBSHIFT_NOTE_RECV && n->is_granted) {
            is_granted = true;
        } else if (n->kind == IBSHIFT_NOTE_RECV || n->kind == IBSHIFT_NOTE_SEND ||
                   (n->kind == IBSHIFT_NOTE_LONG && n->done == 0)) {
            ibshift_nv_note_end(n, -ECONNABORTED);
        }
    }
    return is_granted;
}

static void abort_came(struct ibshift_connection *c, const struct ibshift_net_key *key,
                       const struct ibshift_net_cause *why)
{
    struct ibshift_net_verbs *nv = c->net;
    bool is_granted;

    ibshift_nv_cause_came(c, why);
    if (ibshift_given_up_is_over(&nv->net, c->peer, key)) {
        return;
    }
    if (!ibshift_given_up_add_by(nv->net.given_up, c->peer, key)) {
        ibshift_nv_break(c, -ECONNABORTED,
                         "it gave up more collectives than can be remembered, the last was %u on "
                         "communicator %u",
                         key->seq, ibshift_net_comm(key->comm));
        return;
    }
    is_granted = abort_list(nv, &c->ready, key);
    is_granted |= abort_list(nv, &c->waiting, key);
    is_granted |= abort_list(nv, &c->resting, key);
    if (is_granted) {
        c->root = *why; /* for the peer's other collectives, which end with the connection */
        ibshift_nv_break(c, -ECONNABORTED,
                         "it gave up collective %u on communicator %u, whose buffer it may write",
                         key->seq, ibshift_net_comm(key->comm));
    }
}

static void control_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                         const uint8_t *payload)
{
    struct ibshift_wire_grant body;

    if (head->length != sizeof(body)) {
        ibshift_nv_break(c, -EIO, "it sent a message of unknown kind %u, %u bytes", head->kind,
                         head->length);
        return;
    }
    memcpy(&body, payload, sizeof(body));
    switch (head->kind) {
    case IBSHIFT_WIRE_GRANT:
        ibshift_nv_granted(c, &head->key, &body);
        break;
    case IBSHIFT_WIRE_PULL:
        pull_came(c, &head->key, body.length);
        break;
    case IBSHIFT_WIRE_UNPULL:
        unpull_came(c, &head->key);
        break;
    case IBSHIFT_WIRE_PROBE:
        probe_came(c, &head->key, body.length);
        break;
    case IBSHIFT_WIRE_RING:
        ibshift_nv_ring_came(c, &body);
        break;
    case IBSHIFT_WIRE_LEAVE:
        ibshift_nv_leave_came(c, &head->key);
        break;
    case IBSHIFT_WIRE_ABORT:
        abort_came(c, &head->key,
                   &(struct ibshift_net_cause){.peer = body.id,
                                               .status = -(int32_t)(body.pieces & 0xffff)});
        break;
    case IBSHIFT_WIRE_ASK:
        ibshift_given_up_asked(&c->net->net, c->peer, &head->key);
        break;
    case IBSHIFT_WIRE_CLOSE:
    case IBSHIFT_WIRE_CLOSED:
    case IBSHIFT_WIRE_KEEP:
        ibshift_nv_close_came(c, (enum ibshift_wire_kind)head->kind, &body);
        break;
    default:
        ibshift_nv_break(c, -EIO, "it sent a message of unknown kind %u", head->kind);
    }
}

static inline void limits_came(struct ibshift_connection *c, uint16_t slots, uint16_t quota,
                               uint16_t ring)
{
    ibshift_limit_advance(&c->out.slots, slots);
    ibshift_limit_advance(&c->out.quota, quota);
    if (c->out.ring_address != 0) {
        ibshift_limit_advance(&c->out.ring, ring);
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
    limits_came(c, head->slots, head->quota, head->ring);
    if (head->length <= IBSHIFT_RING_PAYLOAD && ++c->in.recent == IBSHIFT_RING_HOT) {
        ibshift_nv_ring_wanted(c);
    }
    if (head->kind == IBSHIFT_WIRE_DATA) {
        return data_came(c, head, payload, slot);
    }
    if (head->kind == IBSHIFT_WIRE_PIECE) {
        ibshift_nv_piece_came(c, head, payload);
    } else {
        control_came(c, head, payload);
    }
    return false;
}
