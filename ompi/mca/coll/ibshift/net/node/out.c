/* Messages out: into the peer's box; and what peers say of those that are offered, or wait. */
#include <errno.h>
#include <string.h>

#include "net/node/private.h"

static int offer(struct ibshift_node_peer *peer, struct ibshift_node_note *send)
{
    struct ibshift_node_cell *cell = ibshift_node_next_cell(peer);

    if (cell == NULL) {
        return -EAGAIN;
    }
    cell->at = (uint32_t)peer->at_once;
    ibshift_nn_fill(peer, cell, IBSHIFT_NODE_OFFER, &send->match.key, send->length,
                    (uint64_t)(uintptr_t)send->buffer);
    send->is_fetched = false;
    send->is_granted = false;
    send->is_direct = true;
    ibshift_nn_enter(send);
    ibshift_nn_note_move(&peer->resting, send);
    ibshift_nn_begin_to_help(send, send->target, send->share);
    return 0;
}

/* The fence: what was fetched is older than what is said here. */
static int withdraw(struct ibshift_node_peer *peer, struct ibshift_node_note *send)
{
    int rc = ibshift_nn_put_news(peer, IBSHIFT_NODE_WITHDRAWN, &send->match.key, send->length, 0);

    if (rc == 0) {
        ibshift_nn_fence();
        ibshift_nn_note_end(send, -ECANCELED);
    }
    return rc;
}

static uint32_t ring_room(struct ibshift_node_peer *peer, uint32_t wanted)
{
    uint32_t size = peer->card.ring;

    if (size - (peer->out_ring - peer->seen.ring) < wanted) {
        peer->seen.ring = atomic_load_explicit(&peer->out.taken->ring, memory_order_acquire);
    }
    return size - (peer->out_ring - peer->seen.ring);
}

static bool has_quota(struct ibshift_node_peer *peer, uint64_t length)
{
    uint32_t after = peer->out_quota + ibshift_node_cost(length);

    if (after - peer->seen.quota > peer->card.ring) {
        peer->seen.quota = atomic_load_explicit(&peer->out.taken->quota, memory_order_acquire);
    }
    return after - peer->seen.quota <= peer->card.ring;
}

static uint32_t part_size(const struct ibshift_node_peer *peer, uint64_t length)
{
    uint32_t size = length <= 4096 ? 2048 : length <= 16384 ? 4096 : 8192;

    return size <= peer->card.ring / 4 ? size : peer->card.ring / 4;
}

static void copy_to_ring(struct ibshift_node_peer *peer, const uint8_t *from, uint32_t n)
{
    uint32_t at = peer->out_ring & (peer->card.ring - 1);
    uint32_t first = peer->card.ring - at < n ? peer->card.ring - at : n;

    if (peer->out_ring == 0) {
        ibshift_node_map_ring(peer->out.ring, peer->card.ring);
    }
    memcpy(peer->out.ring + at, from, first);
    memcpy(peer->out.ring, from + first, n - first);
}

/* The first part of a message, so that the samples are not all of one moment. */
static void copy_first(struct ibshift_node_peer *peer, const uint8_t *from, uint32_t n)
{
    struct ibshift_net_node *nn = peer->net;
    bool is_sample = nn->options.is_gauged && peer->gauge.rounds < IBSHIFT_NODE_ROUNDS &&
                     n >= IBSHIFT_NODE_LIMIT_LEAST && peer->out_ring >= peer->card.ring;
    uint64_t begin = is_sample ? ibshift_net_now(&nn->net) : 0;

    copy_to_ring(peer, from, n);
    if (is_sample) {
        ibshift_nn_gauge_add(peer, (double)(ibshift_net_now(&nn->net) - begin) / n);
    }
}

/* 0 when all has gone, or -EAGAIN; *done says how much. */
static int put_parts(struct ibshift_node_peer *peer, const struct ibshift_net_key *key,
                     const uint8_t *from, uint64_t length, uint8_t flags, uint64_t *done)
{
    uint32_t part = part_size(peer, length);

    while (*done < length) {
        uint32_t n = length - *done < part ? (uint32_t)(length - *done) : part;
        struct ibshift_node_cell *cell = ibshift_node_next_cell(peer);

        if (cell == NULL || ring_room(peer, n) < n) {
            return -EAGAIN;
        }
        if (*done == 0) {
            copy_first(peer, from, n);
        } else {
            copy_to_ring(peer, from + *done, n);
        }
        cell->at = peer->out_ring;
        cell->part.length = length;
        cell->part.offset = *done;
        peer->out_ring += n;
        *done += n;
        ibshift_node_publish(peer, cell, IBSHIFT_NODE_PART, flags, n, key);
    }
    return 0;
}

static int put_data(struct ibshift_node_peer *peer, const struct ibshift_net_key *key,
                    const uint8_t *from, uint64_t length, uint8_t flags)
{
    struct ibshift_node_cell *cell = ibshift_node_next_cell(peer);

    if (cell == NULL) {
        return -EAGAIN;
    }
    if (length > 0) {
        memcpy(cell->data, from, length);
    }
    ibshift_node_publish(peer, cell, IBSHIFT_NODE_DATA, flags, (uint32_t)length, key);
    return 0;
}

static int put_message(struct ibshift_node_peer *peer, const struct ibshift_net_key *key,
                       const uint8_t *from, uint64_t length, uint8_t flags, uint64_t *done)
{
    struct ibshift_net_node *nn = peer->net;
    bool is_small = length <= IBSHIFT_NODE_CELL_DATA;
    int rc = is_small ? put_data(peer, key, from, length, flags)
                      : put_parts(peer, key, from, length, flags, done);

    if (rc == 0) {
        nn->stats.bytes += length;
        nn->stats.cells += is_small;
        nn->stats.rings += !is_small;
    }
    return rc;
}

/* A note of the list of those that are ready: 0 when it is over and off the list. */
static int go(struct ibshift_node_peer *peer, struct ibshift_node_note *note)
{
    int rc;

    if (note->kind == IBSHIFT_NODE_NEWS) {
        rc = ibshift_nn_put_news(peer, note->news, &note->match.key, note->length, note->target);
        if (rc == 0) {
            ibshift_nn_note_free(note);
        }
        return rc;
    }
    if (note->kind == IBSHIFT_NODE_RECV) {
        return ibshift_nn_fetch(peer, note);
    }
    if (note->is_revoking) {
        return withdraw(peer, note);
    }
    if (note->is_fetched) {
        return offer(peer, note);
    }
    rc = note->is_granted
             ? put_message(peer, &note->match.key, note->buffer, note->length,
                           IBSHIFT_NODE_FREE_OF_QUOTA, &note->done)
             : put_message(peer, &note->match.key, note->buffer, note->length, 0, &note->done);
    if (rc == 0) {
        ibshift_nn_note_end(note, 0);
    }
    return rc;
}

/* Whatever has quota goes, past those that lack it: a receiver that sees quota asks for nothing. */
void ibshift_nn_flush(struct ibshift_node_peer *peer)
{
    struct ibshift_node_note *note, *next;
    int rc = 0;

    while (rc == 0 && peer->ready.first != NULL) {
        rc = go(peer, peer->ready.first);
    }
    for (note = peer->waiting.first; rc == 0 && note != NULL; note = next) {
        next = note->next;
        if (has_quota(peer, note->length)) {
            peer->out_quota += ibshift_node_cost(note->length);
            ibshift_match_remove(&note->match);
            ibshift_nn_note_move(&peer->ready, note);
            rc = go(peer, note);
        }
    }
}

/* Whether it goes into the ring; also where that is dear, when its sender has nothing else to copy: both sides do. */
static bool goes_at_once(const struct ibshift_node_peer *peer, const struct ibshift_net_message *m)
{
    return ibshift_nn_goes_at_once(peer, m->length) ||
           (m->length <= ibshift_node_short(peer->card.ring) && m->is_attended && !m->is_busy);
}

/* A short one that can leave whole at once: 0, or -EAGAIN and nothing has happened. */
static int send_now(struct ibshift_node_peer *peer, const struct ibshift_net_message *m,
                    bool is_granted)
{
    uint32_t part = part_size(peer, m->length);
    uint32_t cells = (uint32_t)((m->length + part - 1) / part);
    uint64_t done = 0;

    if (peer->ready.first != NULL ||
        (!is_granted && (peer->waiting.first != NULL || !has_quota(peer, m->length)))) {
        return -EAGAIN;
    }
    if (m->length > IBSHIFT_NODE_CELL_DATA && (!ibshift_node_has_cells(peer, cells) ||
                                               ring_room(peer, (uint32_t)m->length) < m->length)) {
        return -EAGAIN;
    }
    if (put_message(peer, &m->key, m->buffer, m->length,
                    is_granted ? IBSHIFT_NODE_FREE_OF_QUOTA : 0, &done) != 0) {
        return -EAGAIN;
    }
    peer->out_quota += is_granted ? 0 : ibshift_node_cost(m->length);
    return 0;
}

/* Whatever cannot leave now: a note, on the list of what it waits for. */
static int send_later(struct ibshift_node_peer *peer, const struct ibshift_net_message *m,
                      const struct ibshift_node_note *early)
{
    bool is_long = m->length > ibshift_node_short(peer->card.ring);
    struct ibshift_node_note *note = ibshift_nn_note_post(peer, IBSHIFT_NODE_SEND, m);

    if (note == NULL) {
        return -ENOMEM;
    }
    if (early != NULL) {
        note->is_granted = true;
        note->is_fetched = early->is_fetched;
        note->target = early->target;
        note->share = early->share;
        note->since = early->since;
        ibshift_nn_note_move(&peer->ready, note);
    } else {
        ibshift_nn_enter(note);
        note->is_fetched = !goes_at_once(peer, m) && ibshift_nn_can_copy(peer);
        ibshift_nn_note_move(note->is_fetched ? &peer->ready
                             : is_long        ? &peer->resting
                                              : &peer->waiting,
                             note);
    }
    ibshift_nn_flush(peer);
    return IBSHIFT_NET_PENDING;
}

int ibshift_nn_send(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *peer = ibshift_nn_peer(nn, m->peer);
    struct ibshift_node_note *found, early;

    if (peer == NULL) {
        return -EHOSTUNREACH;
    }
    if (ibshift_nn_meet(peer) != 0) {
        return peer->status;
    }
    if (ibshift_given_up_by(nn->net.given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    found = ibshift_nn_find(&nn->tx, peer, &m->key);
    if (found != NULL) {
        early = *found;
        ibshift_nn_note_free(found);
        if (early.length != m->length) {
            ibshift_nn_mismatch(peer, &m->key, m->length, early.length);
            return peer->status;
        }
    }
    if ((found != NULL ? m->length <= ibshift_node_short(peer->card.ring)
                       : goes_at_once(peer, m)) &&
        send_now(peer, m, found != NULL) == 0) {
        return IBSHIFT_NET_DONE;
    }
    return send_later(peer, m, found != NULL ? &early : NULL);
}

bool ibshift_nn_try_send(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         const void *buffer, size_t length)
{
    struct ibshift_node_peer *peer = (struct ibshift_node_peer *)channel;
    struct ibshift_net_node *nn = peer->net;
    struct ibshift_net_message m = ibshift_net_tried(peer->number, comm_seq, tag, buffer, length);

    if (ibshift_nn_meet(peer) != 0 || !ibshift_nn_goes_at_once(peer, length) ||
        ibshift_given_up_by(nn->net.given_up, m.peer, &m.key) ||
        ibshift_nn_find(&nn->tx, peer, &m.key) != NULL) {
        return false;
    }
    return send_now(peer, &m, false) == 0;
}

void ibshift_nn_grant_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_net_node *nn = peer->net;
    struct ibshift_node_note *note = ibshift_nn_find(&nn->tx, peer, &cell->key);

    if (note != NULL && note->length != cell->grant.length) {
        ibshift_nn_mismatch(peer, &cell->key, note->length, cell->grant.length);
        return;
    }
    if (note == NULL && ibshift_given_up_is_over(&nn->net, peer->number, &cell->key)) {
        return; /* the abort is on its way, and nothing will be written */
    }
    if (note == NULL) {
        note = ibshift_nn_remember(peer, IBSHIFT_NODE_EARLY, &cell->key, cell->grant.length);
        if (note == NULL) {
            return;
        }
    } else if (note->kind == IBSHIFT_NODE_SEND && note->is_direct &&
               cell->kind == IBSHIFT_NODE_FETCH) {
        if (note->list == &peer->resting) { /* it has been offered */
            note->since = ibshift_net_now(&nn->net);
            ibshift_nn_begin_to_help(note, cell->grant.address, cell->at);
        }
        return;
    } else if (note->kind == IBSHIFT_NODE_SEND) {
        ibshift_match_remove(&note->match);
        ibshift_nn_stop_helping(note);
        ibshift_nn_note_move(&peer->ready, note);
    }
    note->is_granted = true;
    note->is_fetched = cell->kind == IBSHIFT_NODE_FETCH;
    note->is_direct = false;
    note->target = note->is_fetched ? cell->grant.address : 0;
    note->share = cell->at;
    note->since = ibshift_net_now(&nn->net);
}

void ibshift_nn_ungrant_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note = ibshift_nn_find(&peer->net->tx, peer, &cell->key);

    if (note != NULL && note->kind == IBSHIFT_NODE_EARLY) {
        ibshift_nn_note_free(note);
    }
}

/* What has been written so far may stay; no more is written after the answer. */
void ibshift_nn_revoke_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note;

    ibshift_nn_ungrant_came(peer, cell);
    note = ibshift_nn_find(&peer->net->tx, peer, &cell->key);
    if (note != NULL && note->list == &peer->helping) {
        ibshift_nn_stop_helping(note);
    }
    for (note = peer->ready.first; note != NULL; note = note->next) {
        if (note->kind == IBSHIFT_NODE_SEND && !note->is_revoking &&
            memcmp(&note->match.key, &cell->key, sizeof(cell->key)) == 0) {
            note->is_granted = false;
            note->is_fetched = false;
            note->target = 0;
            note->done = 0;
            ibshift_nn_enter(note);
            ibshift_nn_note_move(&peer->resting, note);
            break;
        }
    }
    ibshift_nn_tell(peer, IBSHIFT_NODE_REVOKED, &cell->key, 0, 0);
}

void ibshift_nn_taken_came(struct ibshift_node_peer *peer, const struct ibshift_node_cell *cell)
{
    struct ibshift_net_node *nn = peer->net;
    struct ibshift_node_note *note = ibshift_nn_find(&nn->tx, peer, &cell->key);

    if (note == NULL || note->kind != IBSHIFT_NODE_SEND || !note->is_direct) {
        return; /* given up here: the receiver is told so */
    }
    nn->stats.direct++;
    nn->stats.bytes += note->length;
    ibshift_nn_note_end(note, note->is_revoking ? -ECANCELED : 0);
}
