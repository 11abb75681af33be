/*
 * Messages in: out of the own boxes. Their writers can change what lies there at any time, so a
 * cell is copied before it is looked at, and every number in it is checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/node/private.h"

enum { CELLS_AT_ONCE = IBSHIFT_NODE_CELLS };

static uint32_t quota_left(const struct ibshift_node_peer *peer)
{
    return peer->net->card.ring - (peer->in_quota - peer->in_returned);
}

static bool is_long(const struct ibshift_net_node *nn, uint64_t length)
{
    return length > ibshift_node_short(nn->card.ring);
}

/* Tells the sender that the receive is posted; of short ones when the quota may keep them back. */
static void grant(struct ibshift_node_peer *peer, struct ibshift_node_note *recv)
{
    recv->is_granted = true;
    recv->is_direct = recv->is_counted && !recv->is_fetched && !recv->is_streamed;
    ibshift_nn_tell(peer, recv->is_fetched ? IBSHIFT_NODE_FETCH : IBSHIFT_NODE_GRANT,
                    &recv->match.key, recv->length,
                    recv->is_direct ? (uint64_t)(uintptr_t)recv->buffer : 0);
}

/* Messages that are waited for, and that the sender may now have no quota for. */
static void grant_what_is_stuck(struct ibshift_node_peer *peer)
{
    uint32_t left = quota_left(peer);
    struct ibshift_node_note *next;

    for (struct ibshift_node_note *n = peer->resting.first; n != NULL; n = next) {
        next = n->next;
        if (n->kind == IBSHIFT_NODE_RECV && !n->is_granted && ibshift_node_cost(n->length) > left) {
            grant(peer, n);
            if (peer->status != 0) {
                return;
            }
        }
    }
}

/* The message that was held, or the part of it that has come, is the receive's now. */
static int take_held(struct ibshift_node_peer *peer, struct ibshift_node_note *held,
                     const struct ibshift_net_message *m)
{
    if (held->length != m->length) {
        ibshift_nn_mismatch(peer, &m->key, m->length, held->length);
        return peer->status;
    }
    if (held->done > 0) {
        memcpy(m->buffer, held->buffer, held->done);
    }
    if (held->done == held->length) {
        ibshift_nn_drop_held(peer, held);
        return IBSHIFT_NET_DONE;
    }
    if (!held->is_free) {
        ibshift_nn_give_back(peer, held->length);
    }
    ibshift_nn_drop_buffer(held);
    held->kind = IBSHIFT_NODE_RECV;
    held->buffer = m->buffer;
    held->cookie = m->cookie;
    return IBSHIFT_NET_PENDING;
}

static bool sends_long_to(const struct ibshift_node_peer *peer)
{
    const struct ibshift_node_list *lists[] = {&peer->ready, &peer->resting};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (const struct ibshift_node_note *n = lists[i]->first; n != NULL; n = n->next) {
            if (n->kind == IBSHIFT_NODE_SEND && is_long(peer->net, n->length)) {
                return true;
            }
        }
    }
    return false;
}

/*
 * Who copies a long message? A receiver that has nothing else to do: its sender may have several to
 * serve, one after another. Where it gets several itself, or is busy, its senders share the work. In
 * an exchange both are as busy, and both fetch: a line that is written into the receiver's buffer
 * goes to the sender's processor first and comes back when it is read, one that is fetched moves
 * once. For a message that fits into the ring and has nothing beside it, both sides copy at once,
 * unless the gauge has found the ring dear. That takes a sender that looks: one that computes
 * meanwhile has offered the message, and is not needed where the receiver fetches it.
 */
static void choose_way(struct ibshift_node_peer *peer, struct ibshift_node_note *recv,
                       const struct ibshift_net_message *m)
{
    struct ibshift_net_node *nn = peer->net;
    bool is_dear = ibshift_nn_is_ring_dear(nn), is_exchange = sends_long_to(peer);
    bool is_only = nn->longs == peer->longs;

    recv->is_streamed = is_only && !m->is_busy && !is_exchange && m->is_attended &&
                        m->length <= nn->card.ring && !is_dear;
    recv->is_fetched = !recv->is_streamed &&
                       (m->is_read_next || (is_only && (!m->is_busy || is_exchange || is_dear))) &&
                       ibshift_nn_can_copy(peer);
}

/* The receive of a long message, which may have been offered already. */
static int recv_long(struct ibshift_node_peer *peer, struct ibshift_node_note *note,
                     const struct ibshift_net_message *m)
{
    bool is_offered = note->kind == IBSHIFT_NODE_OFFERED;

    if (is_offered && ibshift_nn_meet(peer) != 0) {
        return peer->status;
    }
    if (is_offered && note->length != m->length) {
        ibshift_nn_mismatch(peer, &m->key, m->length, note->length);
        return peer->status;
    }
    note->kind = IBSHIFT_NODE_RECV;
    note->buffer = m->buffer;
    note->length = m->length;
    note->cookie = m->cookie;
    choose_way(peer, note, m);
    note->is_counted = true;
    peer->net->longs++;
    peer->longs++;
    if (is_offered && note->is_fetched) {
        note->since = ibshift_net_now(&peer->net->net);
        ibshift_nn_note_move(&peer->ready, note);
        ibshift_nn_flush(peer);
    } else {
        note->target = 0;
        grant(peer, note);
    }
    return IBSHIFT_NET_PENDING;
}

int ibshift_nn_recv(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *peer = ibshift_nn_peer(nn, m->peer);
    struct ibshift_node_note *held, *note;

    if (peer == NULL) {
        return -EHOSTUNREACH;
    }
    if (peer->status != 0) {
        return peer->status;
    }
    held = nn->rx.count > 0
               ? (struct ibshift_node_note *)ibshift_match_find(&nn->rx, m->peer, &m->key)
               : NULL;
    if (held != NULL) {
        return held->kind == IBSHIFT_NODE_OFFERED ? recv_long(peer, held, m)
                                                  : take_held(peer, held, m);
    }
    if (ibshift_given_up_by(nn->net.given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    note = ibshift_nn_note_new(peer, IBSHIFT_NODE_RECV, &m->key);
    if (note == NULL) {
        return -ENOMEM;
    }
    ibshift_nn_enter(&nn->rx, note);
    ibshift_nn_note_move(&peer->resting, note);
    if (is_long(nn, m->length)) {
        return recv_long(peer, note, m);
    }
    note->buffer = m->buffer;
    note->length = m->length;
    note->cookie = m->cookie;
    if (ibshift_node_cost(m->length) > quota_left(peer)) {
        grant(peer, note);
    }
    return IBSHIFT_NET_PENDING;
}

/* A note for a message that comes early; it counts against the quota. NULL: the peer has failed. */
static struct ibshift_node_note *hold(struct ibshift_node_peer *peer,
                                      const struct ibshift_net_key *key, uint64_t length)
{
    struct ibshift_node_note *note = ibshift_nn_note_new(peer, IBSHIFT_NODE_HELD, key);

    if (note != NULL &&
        (note->buffer = length <= sizeof(note->small) ? note->small : malloc(length)) == NULL) {
        note->kind = IBSHIFT_NODE_NEWS; /* owns nothing */
        ibshift_nn_note_free(note);
        note = NULL;
    }
    if (note == NULL) {
        ibshift_nn_break(peer, -ENOMEM, "out of memory");
        return NULL;
    }
    note->length = length;
    peer->net->stats.held++;
    ibshift_nn_enter(&peer->net->rx, note);
    ibshift_nn_note_move(&peer->resting, note);
    return note;
}

/* Where bytes of a message go: its receive, or a note that holds it. NULL: nowhere. */
static struct ibshift_node_note *place_for(struct ibshift_node_peer *peer,
                                           const struct ibshift_node_cell *cell, uint64_t length)
{
    struct ibshift_net_node *nn = peer->net;
    bool is_free = (cell->flags & IBSHIFT_NODE_FREE_OF_QUOTA) != 0;
    struct ibshift_node_note *note =
        (struct ibshift_node_note *)ibshift_match_find(&nn->rx, peer->number, &cell->key);

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
    if (ibshift_given_up_is_over(&nn->net, peer->number, &cell->key)) {
        return NULL;
    }
    if (is_free || length > ibshift_node_short(nn->card.ring)) {
        ibshift_nn_break(peer, -EPROTO, "it sent a message that it had no grant for");
        return NULL;
    }
    return hold(peer, &cell->key, length);
}

/* The first bytes of a message that may have to be held. False: the sender has overrun us. */
static bool count_quota(struct ibshift_node_peer *peer, uint64_t length)
{
    uint32_t cost = ibshift_node_cost(length);

    if (length > ibshift_node_short(peer->net->card.ring) || cost > quota_left(peer)) {
        ibshift_nn_break(peer, -EPROTO, "it sent more than it may");
        return false;
    }
    peer->in_quota += cost;
    return true;
}

/* After bytes have been put in their place. */
static void came(struct ibshift_node_peer *peer, struct ibshift_node_note *note)
{
    if (note->kind == IBSHIFT_NODE_HELD) {
        if (note->done == note->length) {
            grant_what_is_stuck(peer);
        }
    } else if (note->done == note->length) {
        ibshift_nn_note_end(note, note->is_revoking ? -ECANCELED : 0);
    }
}

static void data_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note;

    if (cell->size > IBSHIFT_NODE_CELL_DATA) {
        ibshift_nn_break(peer, -EPROTO, "a cell of its holds more than a cell can");
        return;
    }
    if (!(cell->flags & IBSHIFT_NODE_FREE_OF_QUOTA) && !count_quota(peer, cell->size)) {
        return;
    }
    note = place_for(peer, cell, cell->size);
    if (note != NULL && note->length != cell->size) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->size);
        return;
    }
    if ((note == NULL || note->kind == IBSHIFT_NODE_RECV) &&
        !(cell->flags & IBSHIFT_NODE_FREE_OF_QUOTA)) {
        ibshift_nn_give_back(peer, cell->size);
    }
    if (note != NULL) {
        if (cell->size > 0) {
            memcpy(note->buffer, cell->data, cell->size);
        }
        note->done = cell->size;
        came(peer, note);
    }
}

static void copy_from_ring(struct ibshift_node_peer *peer, uint8_t *to, uint32_t n)
{
    struct ibshift_net_node *nn = peer->net;
    uint32_t at = peer->in_ring & (nn->card.ring - 1);
    uint32_t first = nn->card.ring - at < n ? nn->card.ring - at : n;

    if (peer->in_ring == 0) {
        ibshift_node_map_ring(peer->in.ring, nn->card.ring);
    }
    memcpy(to, peer->in.ring + at, first);
    if (first < n) {
        memcpy(to + first, peer->in.ring, n - first);
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

static void part_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    bool is_first = cell->part.offset == 0;
    struct ibshift_node_note *note;

    if (!is_part_right(peer, cell) || (is_first && !(cell->flags & IBSHIFT_NODE_FREE_OF_QUOTA) &&
                                       !count_quota(peer, cell->part.length))) {
        return;
    }
    note = place_for(peer, cell, cell->part.length);
    if (peer->status != 0) {
        return;
    }
    if (note != NULL && note->length != cell->part.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->part.length);
        return;
    }
    if (is_first && !(cell->flags & IBSHIFT_NODE_FREE_OF_QUOTA) &&
        (note == NULL || note->kind == IBSHIFT_NODE_RECV)) {
        ibshift_nn_give_back(peer, cell->part.length);
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

/* DONE: its real outcome, even where it is being taken back. REVOKED: nothing more is written. */
static void written(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell,
                    bool is_done)
{
    struct ibshift_node_note *note =
        (struct ibshift_node_note *)ibshift_match_find(&peer->net->rx, peer->number, &cell->key);

    if (note == NULL || note->kind != IBSHIFT_NODE_RECV || !note->is_direct) {
        return; /* ended meanwhile */
    }
    if (is_done && note->length != cell->grant.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->grant.length);
    } else if (is_done || note->is_revoking) {
        ibshift_nn_note_end(note, is_done ? 0 : -ECANCELED);
    }
}

static void asked(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    const struct ibshift_node_note *note =
        (struct ibshift_node_note *)ibshift_match_find(&peer->net->rx, peer->number, &cell->key);

    if (note == NULL) {
        (void)ibshift_given_up_unlike(&peer->net->net, peer->number, &cell->key);
    } else if (note->length != cell->grant.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->grant.length);
    }
}

static void broken_by_peer(struct ibshift_node_peer *peer, int64_t status)
{
    bool is_mismatch = status == -EMSGSIZE;

    ibshift_nn_break(peer, is_mismatch ? -EMSGSIZE : -ECONNRESET,
                     is_mismatch ? "it says that a message has another length there"
                                 : "it has given up the connection to this process");
}

/*
 * The peer has cancelled its own messages before it said so, in the same box, so nothing of them
 * follows: also what was granted to it is ours again.
 */
static void end_list(struct ibshift_net_node *nn, struct ibshift_node_list *list,
                     const struct ibshift_net_key *key)
{
    struct ibshift_node_note *next;

    for (struct ibshift_node_note *note = list->first; note != NULL; note = next) {
        next = note->next;
        if (ibshift_net_is_of(&note->match.key, key->comm, key->seq) &&
            (note->kind == IBSHIFT_NODE_SEND || note->kind == IBSHIFT_NODE_RECV)) {
            ibshift_nn_note_end(note, note->is_revoking ? -ECANCELED : -ECONNABORTED);
        }
    }
}

static void abort_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_net_node *nn = peer->net;
    const struct ibshift_net_key *key = &cell->key;

    peer->cause = (struct ibshift_net_cause){.peer = (uint32_t)cell->grant.address,
                                             .status = (int32_t)(int64_t)cell->grant.length};
    end_list(nn, &peer->resting, key);
    end_list(nn, &peer->waiting, key);
    end_list(nn, &peer->ready, key);
    if (!ibshift_given_up_is_over(&nn->net, peer->number, key) &&
        !ibshift_given_up_add_by(nn->net.given_up, peer->number, key)) {
        ibshift_nn_break(peer, -ECONNABORTED, "it gave up more collectives than can be remembered");
    }
}

static void cell_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    switch (cell->kind) {
    case IBSHIFT_NODE_HELLO:
        break;
    case IBSHIFT_NODE_DATA:
        data_came(peer, cell);
        break;
    case IBSHIFT_NODE_PART:
        part_came(peer, cell);
        break;
    case IBSHIFT_NODE_GRANT:
    case IBSHIFT_NODE_FETCH:
        ibshift_nn_grant_came(peer, cell);
        break;
    case IBSHIFT_NODE_OFFER:
        ibshift_nn_offer_came(peer, cell);
        break;
    case IBSHIFT_NODE_WITHDRAWN:
        ibshift_nn_withdrawn(peer, cell);
        break;
    case IBSHIFT_NODE_TAKEN:
        ibshift_nn_taken_came(peer, cell);
        break;
    case IBSHIFT_NODE_UNGRANT:
        ibshift_nn_ungrant_came(peer, cell);
        break;
    case IBSHIFT_NODE_DONE:
    case IBSHIFT_NODE_REVOKED:
        written(peer, cell, cell->kind == IBSHIFT_NODE_DONE);
        break;
    case IBSHIFT_NODE_REVOKE:
        ibshift_nn_revoke_came(peer, cell);
        break;
    case IBSHIFT_NODE_ASK:
        asked(peer, cell);
        break;
    case IBSHIFT_NODE_ASK_AFTER:
        ibshift_given_up_asked(&peer->net->net, peer->number, &cell->key);
        break;
    case IBSHIFT_NODE_ABORT:
        abort_came(peer, cell);
        break;
    case IBSHIFT_NODE_BREAK:
        broken_by_peer(peer, cell->value);
        break;
    default:
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
    struct ibshift_node_note *held =
        peer->net->rx.count > 0
            ? (struct ibshift_node_note *)ibshift_match_find(&peer->net->rx, m->peer, &m->key)
            : NULL;

    return held != NULL && held->kind == IBSHIFT_NODE_HELD && held->length == m->length &&
           held->done == held->length && take_held(peer, held, m) == IBSHIFT_NET_DONE;
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
    struct ibshift_node_note *note = hold(peer, &m->key, m->length);

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
        cell->size <= IBSHIFT_NODE_CELL_DATA && count_quota(peer, m->length)) {
        if (cell->size > 0) {
            memcpy(m->buffer, cell->data, cell->size);
        }
        ibshift_nn_give_back(peer, cell->size);
        return true;
    }
    if (peer->status == 0 && is_part(peer, cell, m, 0) && count_quota(peer, m->length)) {
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

    if (peer->status != 0 || length > nn->at_once ||
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
