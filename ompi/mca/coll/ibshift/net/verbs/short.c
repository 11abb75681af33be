/* Short messages: sent at once when the receiver has room, held there when nobody waits yet. Receives of
 * all lengths are posted here; for a long message that is when its grant goes out (long.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/inside.h"

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
    struct ibshift_note *note = ibshift_nv_note_post(c, IBSHIFT_NOTE_SEND, m);
    if (note == NULL) {
        return -ENOMEM;
    }
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

/* The message has come all the same: what asks for it does not go, or is taken back. */
static void unpull(struct ibshift_connection *c, const struct ibshift_net_key *key)
{
    struct ibshift_note *n = c->ready.first;

    while (n != NULL &&
           (n->wire_kind != IBSHIFT_WIRE_PULL || memcmp(&n->match.key, key, sizeof(*key)) != 0)) {
        n = n->next;
    }
    if (n != NULL) {
        ibshift_nv_note_end(n, 0);
    } else {
        ibshift_nv_control(c, key, IBSHIFT_WIRE_UNPULL, NULL);
    }
}

/* The store has no more room for this peer: ask by name for all that is waited for. */
static void pull_all(struct ibshift_connection *c)
{
    struct ibshift_note *next;

    for (struct ibshift_note *n = c->resting.first; n != NULL && c->status == 0; n = next) {
        next = n->next;
        if (n->kind == IBSHIFT_NOTE_RECV && !n->is_pulled && !n->is_cast &&
            n->length <= c->net->net.max_eager) {
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

int ibshift_nv_recv(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_match *held =
        c->in.held + c->in.ring_held > 0 ? ibshift_match_find(&nv->rx, c->peer, &m->key) : NULL;

    if (held != NULL) {
        return take_held(c, (struct ibshift_note *)held, m);
    }
    if (m->length > nv->net.max_eager && m->standing != 0) {
        int rc = ibshift_nv_standing_recv(c, m);
        if (rc != -ENOENT) {
            return rc;
        }
    }
    if (m->length > nv->net.max_eager && nv->free_grant_count == 0) {
        return -EAGAIN;
    }
    struct ibshift_note *note = ibshift_nv_note_post(c, IBSHIFT_NOTE_RECV, m);
    if (note == NULL) {
        return -ENOMEM;
    }
    note->is_cast = m->cast != NULL;
    nv->queued += m->length > IBSHIFT_RING_PAYLOAD;
    ibshift_nv_note_enter(note, &c->resting);
    ibshift_nv_connect(c);
    if (c->status != 0) {
        return IBSHIFT_NET_PENDING; /* connecting failed at once, the event is there */
    }
    if (m->length > nv->net.max_eager) {
        note->standing = ibshift_nv_may_stand(nv) ? m->standing : 0;
        ibshift_nv_grant(note, m->mem);
    } else if (!note->is_cast && c->in.held >= c->in.quota_window) {
        pull(note);
    }
    return IBSHIFT_NET_PENDING;
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
    void *cell = slot == NULL ? malloc(head->length + 1) : NULL;
    struct ibshift_note *note =
        slot != NULL || cell != NULL ? ibshift_nv_note_new(c, IBSHIFT_NOTE_HELD, &head->key) : NULL;
    if (note == NULL) {
        free(cell);
        ibshift_nv_break_no_memory(c);
        return false;
    }
    note->length = head->length;
    ibshift_nv_note_enter(note, &c->resting);
    c->net->stats.held++;
    if (slot == NULL) { /* it came through the ring */
        note->buffer = cell;
        note->is_apart = true;
        ibshift_nv_copy(cell, payload, note->length);
        c->in.ring_held += ibshift_ring_lines(head->length);
        return false;
    }
    note->slot = slot;
    note->buffer = slot->data + sizeof(*head);
    if (++c->in.held >= c->in.quota_window) {
        pull_all(c);
    }
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

bool ibshift_nv_data_came(struct ibshift_connection *c, const struct ibshift_wire *head,
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
            unpull(c, &head->key);
        }
    }
    if (has_quota) {
        c->in.quota++;
        ibshift_nv_held_ended(c);
    }
    return false;
}
