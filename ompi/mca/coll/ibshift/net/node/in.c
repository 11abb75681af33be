/*
 * Messages in: out of the own boxes. Their writers can change what lies there at any time, so a
 * cell is copied before it is looked at, and every number in it is checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/node/private.h"

enum { CELLS_AT_ONCE = IBSHIFT_NODE_CELLS };

static bool is_free_of_quota(const struct ibshift_node_cell *cell)
{
    return (cell->flags & IBSHIFT_NODE_FREE_OF_QUOTA) != 0;
}

/* Where bytes of a message go: its receive, or a note that holds it. NULL: nowhere. */
static struct ibshift_node_note *place_for(struct ibshift_node_peer *peer,
                                           const struct ibshift_node_cell *cell, uint64_t length)
{
    bool is_free = is_free_of_quota(cell);
    struct ibshift_node_note *note = ibshift_nn_find(&peer->net->rx, peer, &cell->key);

    if (note != NULL && note->kind == IBSHIFT_NODE_OFFERED) {
        ibshift_nn_break(peer, -EPROTO, "it sent a message that it had offered");
        return NULL;
    }
    if (note != NULL) {
        if (note->kind == IBSHIFT_NODE_RECV && note->done == 0 && note->is_granted && !is_free &&
            !note->is_revoking) {
            ibshift_nn_tell(peer, IBSHIFT_NODE_UNGRANT, &cell->key, 0, 0);
        }
        return note;
    }
    if (ibshift_given_up_is_over(&peer->net->net, peer->number, &cell->key)) {
        return NULL;
    }
    if (is_free || length > ibshift_node_short(peer->net->card.ring)) {
        ibshift_nn_break(peer, -EPROTO, "it sent a message that it had no grant for");
        return NULL;
    }
    return ibshift_nn_hold(peer, &cell->key, length);
}

static void copy_from_ring(const struct ibshift_node_peer *peer, uint8_t *to, uint32_t n)
{
    uint32_t ring = peer->net->card.ring, at = peer->in_ring & (ring - 1);
    uint32_t first = ring - at < n ? ring - at : n;

    if (peer->in_ring == 0) {
        ibshift_node_map_ring(peer->in.ring, ring);
    }
    memcpy(to, peer->in.ring + at, first);
    ibshift_net_take_over(peer->in.ring + at, first);
    if (first < n) {
        memcpy(to + first, peer->in.ring, n - first);
        ibshift_net_take_over(peer->in.ring, n - first);
    }
}

static bool is_part_right(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    if (cell->at != peer->in_ring || cell->size == 0 || cell->size > peer->net->card.ring ||
        cell->part.offset > cell->part.length ||
        cell->size > cell->part.length - cell->part.offset) {
        ibshift_nn_break(peer, -EPROTO, "a part of a message is not where it should be");
        return false;
    }
    return true;
}

/* to NULL: nobody wants it. */
static void take_part(struct ibshift_node_peer *peer, uint8_t *to, uint32_t size)
{
    if (to != NULL) {
        copy_from_ring(peer, to, size);
    }
    peer->in_ring += size;
    atomic_store_explicit(&peer->in.taken->ring, peer->in_ring, memory_order_release);
}

/* After bytes have been put in their place. */
static void came(struct ibshift_node_peer *peer, struct ibshift_node_note *note)
{
    if (note->done < note->length) {
        return;
    }
    if (note->kind == IBSHIFT_NODE_HELD) {
        ibshift_nn_grant_what_is_stuck(peer);
    } else {
        ibshift_nn_note_end(note, note->is_revoking ? -ECANCELED : 0);
    }
}

/*
 * The place of a cell's bytes, of a message of that length. False: the peer has failed. With the first of
 * them the message counts against the quota, until it is known that it need not be held.
 */
static bool find_place(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell,
                       uint64_t length, bool is_first, struct ibshift_node_note **note)
{
    bool is_counted = is_first && !is_free_of_quota(cell);

    if (is_counted && !ibshift_nn_count_quota(peer, length)) {
        return false;
    }
    *note = place_for(peer, cell, length);
    if (*note != NULL && (*note)->length != length) {
        ibshift_nn_mismatch(peer, &cell->key, (*note)->length, length);
    } else if (is_counted && (*note == NULL || (*note)->kind == IBSHIFT_NODE_RECV)) {
        ibshift_nn_give_back(peer, length);
    }
    return peer->status == 0;
}

static void data_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note;

    if (cell->size > IBSHIFT_NODE_CELL_DATA) {
        ibshift_nn_break(peer, -EPROTO, "a cell of its holds more than a cell can");
    } else if (find_place(peer, cell, cell->size, true, &note) && note != NULL) {
        if (cell->size > 0) {
            memcpy(note->buffer, cell->data, cell->size);
        }
        note->done = cell->size;
        came(peer, note);
    }
}

static void part_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note;

    if (!is_part_right(peer, cell) ||
        !find_place(peer, cell, cell->part.length, cell->part.offset == 0, &note)) {
        return;
    }
    if (note != NULL && note->done != cell->part.offset) {
        ibshift_nn_break(peer, -EPROTO, "a part of a message is missing");
        return;
    }
    take_part(peer, note != NULL ? note->buffer + note->done : NULL, cell->size);
    if (note != NULL) {
        note->done += cell->size;
        came(peer, note);
    }
}

static void offer_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note = ibshift_nn_find(&peer->net->rx, peer, &cell->key);

    if (note == NULL && ibshift_given_up_is_over(&peer->net->net, peer->number, &cell->key)) {
        return; /* it hears of it, or knows */
    }
    if (cell->grant.length <= IBSHIFT_NODE_CELL_DATA) {
        ibshift_nn_break(peer, -EPROTO, "it offered a message that fits into a cell");
        return;
    }
    if (cell->grant.length <= peer->at_once && cell->at >= IBSHIFT_NODE_LIMIT_LEAST) {
        ibshift_nn_limit(peer, cell->at); /* as the sender: who tries longer ones waits in vain */
    }
    if (note == NULL) {
        note = ibshift_nn_remember(peer, IBSHIFT_NODE_OFFERED, &cell->key, cell->grant.length);
    }
    if (note == NULL || note->is_revoking) {
        return;
    }
    if (note->length != cell->grant.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->grant.length);
        return;
    }
    note->target = cell->grant.address;
    if (note->kind == IBSHIFT_NODE_RECV && !note->is_counted && !note->is_granted) {
        ibshift_nn_take_short_offer(note);
    }
    if (peer->status == 0 && note->kind == IBSHIFT_NODE_RECV && note->is_fetched) {
        note->since = ibshift_net_now(&peer->net->net);
        ibshift_nn_note_move(&peer->ready, note);
    }
}

/* Before the sender uses the buffer again: what has been fetched of it meanwhile is no message. */
static void withdrawn(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note = ibshift_nn_find(&peer->net->rx, peer, &cell->key);

    if (note != NULL && note->kind == IBSHIFT_NODE_OFFERED) {
        ibshift_nn_note_free(note);
    } else if (note != NULL && note->kind == IBSHIFT_NODE_RECV && note->is_fetched) {
        (void)ibshift_nn_close_share(note);
        note->done = 0;
        ibshift_nn_note_move(&peer->resting, note);
    }
}

/* All of the message is taken by either side, and this is what its sender has copied. */
static void written(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note = ibshift_nn_find(&peer->net->rx, peer, &cell->key);

    if (note == NULL || note->kind != IBSHIFT_NODE_RECV || note->share == 0) {
        return; /* ended, or on its way to it */
    }
    if (note->length != cell->grant.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->grant.length);
    } else if (note->length - note->done != cell->grant.address) {
        ibshift_nn_break(peer, -EPROTO,
                         "it says that it has copied more or less of a message than it took");
    } else {
        (void)ibshift_nn_close_share(note);
        note->done = note->length;
        ibshift_nn_note_move(&peer->ready, note);
    }
}

/* Nothing more is written. */
static void revoked(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note = ibshift_nn_find(&peer->net->rx, peer, &cell->key);

    if (note != NULL && note->kind == IBSHIFT_NODE_RECV && note->is_revoking) {
        ibshift_nn_note_end(note, -ECANCELED);
    }
}

static void asked(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    const struct ibshift_node_note *note = ibshift_nn_find(&peer->net->rx, peer, &cell->key);

    if (note == NULL) {
        (void)ibshift_given_up_unlike(&peer->net->net, peer->number, &cell->key);
    } else if (note->length != cell->grant.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->grant.length);
    }
}

static void asked_after(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    ibshift_given_up_asked(&peer->net->net, peer->number, &cell->key);
    if (ibshift_given_up_has_ended(&peer->net->net, &cell->key)) {
        ibshift_nn_tell(peer, IBSHIFT_NODE_ENDED, &cell->key, 0, 0);
    }
}

static void find_empty(struct ibshift_node_note *note, const void *key)
{
    const struct ibshift_net_key *ended = key;

    if (ibshift_net_is_of(&note->match.key, ended->comm, ended->seq) &&
        ibshift_nn_is_posted(note) && !note->is_revoking) {
        ibshift_nn_mismatch(note->peer, &note->match.key, note->length, 0);
    }
}

/* What is still posted has no other side. */
static void ended_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    ibshift_nn_each(peer, find_empty, &cell->key);
}

static void broken_by_peer(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    bool is_mismatch = cell->value == -EMSGSIZE;

    ibshift_nn_break(peer, is_mismatch ? -EMSGSIZE : -ECONNRESET,
                     is_mismatch ? "it says that a message has another length there"
                                 : "it has given up the connection to this process");
}

/*
 * The peer has cancelled its own messages before it said so, in the same box, so nothing of them
 * follows: also what was granted to it is ours again.
 */
static void abort_note(struct ibshift_node_note *note, const void *context)
{
    const struct ibshift_net_key *key = context;

    if (ibshift_net_is_of(&note->match.key, key->comm, key->seq) && ibshift_nn_is_posted(note)) {
        ibshift_nn_note_end(note, note->is_revoking ? -ECANCELED : -ECONNABORTED);
    }
}

static void abort_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    const struct ibshift_net_key *key = &cell->key;

    peer->cause = (struct ibshift_net_cause){.peer = (uint32_t)cell->grant.address,
                                             .status = (int32_t)(int64_t)cell->grant.length};
    ibshift_given_up_heard(peer->net->net.given_up, peer->number, &peer->cause);
    ibshift_nn_each(peer, abort_note, key);
    if (!ibshift_given_up_is_over(&peer->net->net, peer->number, key)) {
        ibshift_given_up_add_by(peer->net->net.given_up, peer->number, key);
    }
}

static void hello_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    (void)peer; /* it was met by what it says */
    (void)cell;
}

static void (*const cell_handlers[])(struct ibshift_node_peer *peer,
                                     const struct ibshift_node_cell *cell) = {
    [IBSHIFT_NODE_HELLO] = hello_came,
    [IBSHIFT_NODE_DATA] = data_came,
    [IBSHIFT_NODE_PART] = part_came,
    [IBSHIFT_NODE_GRANT] = ibshift_nn_grant_came,
    [IBSHIFT_NODE_FETCH] = ibshift_nn_grant_came,
    [IBSHIFT_NODE_OFFER] = offer_came,
    [IBSHIFT_NODE_WITHDRAWN] = withdrawn,
    [IBSHIFT_NODE_TAKEN] = ibshift_nn_taken_came,
    [IBSHIFT_NODE_UNGRANT] = ibshift_nn_ungrant_came,
    [IBSHIFT_NODE_DONE] = written,
    [IBSHIFT_NODE_REVOKED] = revoked,
    [IBSHIFT_NODE_REVOKE] = ibshift_nn_revoke_came,
    [IBSHIFT_NODE_ASK] = asked,
    [IBSHIFT_NODE_ASK_AFTER] = asked_after,
    [IBSHIFT_NODE_ENDED] = ended_came,
    [IBSHIFT_NODE_ABORT] = abort_came,
    [IBSHIFT_NODE_BREAK] = broken_by_peer,
};

static void cell_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    if (cell->kind < sizeof(cell_handlers) / sizeof(cell_handlers[0])) {
        cell_handlers[cell->kind](peer, cell);
    } else {
        ibshift_nn_break(peer, -EPROTO, "a cell of its has an unknown kind");
    }
}

/* All that has come from a peer, within bounds. */
void ibshift_nn_take(struct ibshift_node_peer *peer)
{
    struct ibshift_node_cell cell;

    for (int i = 0; i < CELLS_AT_ONCE && peer->status == 0 && ibshift_node_has_cell(peer); i++) {
        ibshift_node_take_cell(peer, &cell);
        cell_came(peer, &cell);
    }
}

/*
 * Messages that are tried, not posted: some looks at the one cell that the peer writes next, and
 * the bytes go from the box to who waits for them.
 */

static bool is_there_soon(struct ibshift_node_peer *peer)
{
    for (uint32_t i = 0; i < peer->net->options.looks; i++) {
        if (ibshift_node_has_cell(peer)) {
            return true;
        }
    }
    return false;
}

/* Of a message that nobody has posted a receive for. */
static bool try_held(struct ibshift_node_peer *peer, const struct ibshift_net_message *m)
{
    struct ibshift_node_note *held = ibshift_nn_find(&peer->net->rx, peer, &m->key);

    return held != NULL && held->kind == IBSHIFT_NODE_HELD && held->length == m->length &&
           held->done == held->length && ibshift_nn_take_held(held, m) == IBSHIFT_NET_DONE;
}

static bool is_of(const struct ibshift_node_cell *cell, const struct ibshift_net_message *m)
{
    return cell->flags == 0 && memcmp(&m->key, &cell->key, sizeof(m->key)) == 0;
}

/* The part of the message that follows so many bytes of it. */
static bool is_part(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell,
                    const struct ibshift_net_message *m, uint64_t done)
{
    return cell->kind == IBSHIFT_NODE_PART && is_of(cell, m) && cell->part.length == m->length &&
           cell->part.offset == done && is_part_right(peer, cell);
}

/* The rest is late: what has come is held until it does. */
static void hold_rest(struct ibshift_node_peer *peer, const struct ibshift_net_message *m,
                      uint64_t done)
{
    struct ibshift_node_note *note = ibshift_nn_hold(peer, &m->key, m->length);

    if (note != NULL) {
        memcpy(note->buffer, m->buffer, done);
        note->done = done;
    }
}

/* From its first part on. Its sender has put all of it into the box, or is about to. */
static bool take_parts(struct ibshift_node_peer *peer, struct ibshift_node_cell *cell,
                       const struct ibshift_net_message *m)
{
    uint64_t done = 0;

    for (;;) {
        take_part(peer, (uint8_t *)m->buffer + done, cell->size);
        done += cell->size;
        if (done == m->length) {
            ibshift_nn_give_back(peer, m->length);
            return true;
        }
        if (!is_there_soon(peer)) {
            hold_rest(peer, m, done);
            return false;
        }
        ibshift_node_take_cell(peer, cell);
        if (!is_part(peer, cell, m, done)) {
            if (peer->status == 0) {
                hold_rest(peer, m, done);
            }
            if (peer->status == 0) {
                cell_came(peer, cell);
            }
            return false;
        }
    }
}

/* A cell that was taken. True: it was the message, or began it, and all of that has come. */
static bool take(struct ibshift_node_peer *peer, struct ibshift_node_cell *cell,
                 const struct ibshift_net_message *m)
{
    if (cell->kind == IBSHIFT_NODE_DATA && is_of(cell, m) && cell->size == m->length &&
        cell->size <= IBSHIFT_NODE_CELL_DATA && ibshift_nn_count_quota(peer, m->length)) {
        if (cell->size > 0) {
            memcpy(m->buffer, cell->data, cell->size);
        }
        ibshift_nn_give_back(peer, cell->size);
        return true;
    }
    if (peer->status == 0 && is_part(peer, cell, m, 0) && ibshift_nn_count_quota(peer, m->length)) {
        return take_parts(peer, cell, m);
    }
    if (peer->status == 0) {
        cell_came(peer, cell);
    }
    return false;
}

bool ibshift_nn_try_recv(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         void *buffer, size_t length)
{
    struct ibshift_node_peer *peer = (struct ibshift_node_peer *)channel;
    struct ibshift_net_node *nn = peer->net;
    struct ibshift_net_message m = ibshift_net_tried(peer->number, comm_seq, tag, buffer, length);
    struct ibshift_node_cell cell;

    if (peer->status != 0 || length > peer->at_once ||
        ibshift_given_up_by(nn->net.given_up, m.peer, &m.key)) {
        return false;
    }
    if (try_held(peer, &m)) {
        return true;
    }
    for (int i = 0; i < IBSHIFT_NODE_CELLS && peer->status == 0 && is_there_soon(peer); i++) {
        ibshift_node_take_cell(peer, &cell);
        if (take(peer, &cell, &m) || try_held(peer, &m)) {
            return true;
        }
        if (cell.kind == IBSHIFT_NODE_OFFER) {
            return false; /* it may be of this message, which is then posted */
        }
    }
    return false;
}
