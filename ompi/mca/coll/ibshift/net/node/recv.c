/*
 * Messages that are waited for: their receives, and who copies; and messages that are held, since nobody
 * waits for them yet.
 */
#include <errno.h>
#include <stdlib.h>

#include "net/node/private.h"

static uint32_t quota_left(const struct ibshift_node_peer *peer)
{
    return peer->net->card.ring - (peer->in_quota - peer->in_returned);
}

static bool is_long(const struct ibshift_net_node *nn, uint64_t length)
{
    return length > ibshift_node_short(nn->card.ring);
}

bool ibshift_nn_count_quota(struct ibshift_node_peer *peer, uint64_t length)
{
    uint32_t cost = ibshift_node_cost(length);

    if (is_long(peer->net, length) || cost > quota_left(peer)) {
        ibshift_nn_break(peer, -EPROTO, "it sent more than it may");
        return false;
    }
    peer->in_quota += cost;
    return true;
}

static bool open_share(struct ibshift_node_note *recv)
{
    struct ibshift_node_peer *peer = recv->peer;
    uint32_t place = 0;

    while (place < IBSHIFT_NODE_SHARES && (peer->shares >> place & 1) != 0) {
        place++;
    }
    if (place == IBSHIFT_NODE_SHARES || recv->length >> IBSHIFT_NODE_SHARE_BITS != 0) {
        return false;
    }
    peer->shares |= 1u << place;
    recv->share = ibshift_node_share(place, ++peer->share_turns[place]);
    atomic_store_explicit(ibshift_nn_taken(recv), ibshift_nn_turn(recv), memory_order_release);
    return true;
}

/* Tells the sender where it may copy, too. False: there is no room for it. */
static bool offer_share(struct ibshift_node_peer *peer, struct ibshift_node_note *recv)
{
    struct ibshift_node_cell *cell;

    if (ibshift_nn_meet(peer) != 0 || (cell = ibshift_node_next_cell(peer)) == NULL ||
        !open_share(recv)) {
        return false;
    }
    recv->is_granted = true;
    cell->at = recv->share;
    ibshift_nn_fill(peer, cell, IBSHIFT_NODE_FETCH, &recv->match.key, recv->length,
                    (uint64_t)(uintptr_t)recv->buffer);
    peer->net->stats.control++;
    return true;
}

/* Tells the sender that the receive is posted; of short ones when the quota may keep them back. */
static void grant(struct ibshift_node_peer *peer, struct ibshift_node_note *recv)
{
    recv->is_granted = true;
    if (!recv->is_shared || !offer_share(peer, recv)) {
        ibshift_nn_tell(peer, recv->is_fetched ? IBSHIFT_NODE_FETCH : IBSHIFT_NODE_GRANT,
                        &recv->match.key, recv->length, 0);
    }
}

void ibshift_nn_grant_what_is_stuck(struct ibshift_node_peer *peer)
{
    uint32_t left = quota_left(peer);
    struct ibshift_node_note *next;

    for (struct ibshift_node_note *n = peer->resting.first; n != NULL && peer->status == 0;
         n = next) {
        next = n->next;
        if (n->kind == IBSHIFT_NODE_RECV && !n->is_granted && ibshift_node_cost(n->length) > left) {
            grant(peer, n);
        }
    }
}

struct ibshift_node_note *ibshift_nn_hold(struct ibshift_node_peer *peer,
                                          const struct ibshift_net_key *key, uint64_t length)
{
    struct ibshift_node_note *note = ibshift_nn_remember(peer, IBSHIFT_NODE_HELD, key, length);

    if (note == NULL) {
        return NULL;
    }
    note->buffer = length <= sizeof(note->small) ? note->small : malloc(length);
    if (note->buffer == NULL) {
        ibshift_nn_break(peer, -ENOMEM, "out of memory");
        return NULL;
    }
    peer->net->stats.held++;
    return note;
}

int ibshift_nn_take_held(struct ibshift_node_note *held, const struct ibshift_net_message *m)
{
    struct ibshift_node_peer *peer = held->peer;

    if (held->length != m->length) {
        ibshift_nn_mismatch(peer, &m->key, m->length, held->length);
        return peer->status;
    }
    if (held->done > 0) {
        memcpy(m->buffer, held->buffer, held->done);
    }
    if (held->done == held->length) {
        ibshift_nn_drop_held(held);
        return IBSHIFT_NET_DONE;
    }
    ibshift_nn_give_back(peer, held->length);
    ibshift_nn_drop_buffer(held);
    held->kind = IBSHIFT_NODE_RECV;
    held->buffer = m->buffer;
    held->cookie = m->cookie;
    return IBSHIFT_NET_PENDING;
}

static bool sends_long_to(const struct ibshift_node_peer *peer)
{
    const struct ibshift_node_note *firsts[] = {peer->ready.first, peer->helping.first,
                                                peer->resting.first};

    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        for (const struct ibshift_node_note *n = firsts[i]; n != NULL; n = n->next) {
            if (n->kind == IBSHIFT_NODE_SEND && !ibshift_nn_goes_at_once(peer, n->length)) {
                return true;
            }
        }
    }
    return false;
}

/*
 * Who copies a long message? The receiver fetches it, which needs no sender that looks; and the sender helps where both
 * sides wait, or the receiver has something else to do, or has to serve several. In an exchange both are as
 * busy, and both fetch: a line that is written into the receiver's buffer goes to the sender's
 * processor first and comes back when it is read, one that is fetched moves once. A message that fits into
 * the ring goes through it where both sides wait, unless the gauge has found the ring dear.
 */
static void choose_way(struct ibshift_node_note *recv, const struct ibshift_net_message *m)
{
    struct ibshift_node_peer *peer = recv->peer;
    bool is_exchange = sends_long_to(peer), is_only = peer->net->longs == peer->longs;

    recv->is_streamed = is_only && !m->is_busy && !is_exchange && m->is_attended &&
                        m->length <= peer->net->card.ring && !ibshift_nn_is_ring_dear(peer);
    recv->is_fetched = !recv->is_streamed && ibshift_nn_can_copy(peer);
    recv->is_halved = m->is_attended && !is_exchange;
    recv->is_shared =
        recv->is_fetched && !is_exchange && (m->is_attended || m->is_busy || !is_only);
}

/* The receive of a long message, which may have been offered already. */
static void begin_long(struct ibshift_node_note *recv, const struct ibshift_net_message *m,
                       bool is_offered)
{
    struct ibshift_node_peer *peer = recv->peer;

    choose_way(recv, m);
    recv->is_counted = true;
    peer->net->longs++;
    peer->longs++;
    if (!is_offered || !recv->is_fetched) {
        recv->target = 0;
        grant(peer, recv);
        return;
    }
    recv->since = ibshift_net_now(&peer->net->net);
    ibshift_nn_note_move(&peer->ready, recv);
    if (!recv->is_shared || !offer_share(peer, recv) || !m->is_busy) {
        ibshift_nn_flush(peer);
    }
}

/* Its ring is dear: this side expected the message in its own. */
void ibshift_nn_take_short_offer(struct ibshift_node_note *recv)
{
    struct ibshift_node_peer *peer = recv->peer;

    recv->is_fetched = ibshift_nn_meet(peer) == 0 && ibshift_nn_can_copy(peer);
    if (!recv->is_fetched && peer->status == 0) {
        grant(peer, recv);
    }
}

static int take_offer(struct ibshift_node_note *offered, const struct ibshift_net_message *m)
{
    struct ibshift_node_peer *peer = offered->peer;

    if (ibshift_nn_meet(peer) != 0) {
        return peer->status;
    }
    if (offered->length != m->length) {
        ibshift_nn_mismatch(peer, &m->key, m->length, offered->length);
        return peer->status;
    }
    offered->kind = IBSHIFT_NODE_RECV;
    offered->buffer = m->buffer;
    offered->cookie = m->cookie;
    begin_long(offered, m, true);
    return IBSHIFT_NET_PENDING;
}

int ibshift_nn_recv(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *peer = ibshift_nn_peer(nn, m->peer);
    struct ibshift_node_note *note;

    if (peer == NULL) {
        return -EHOSTUNREACH;
    }
    if (peer->status != 0) {
        return peer->status;
    }
    note = ibshift_nn_find(&nn->rx, peer, &m->key);
    if (note != NULL) {
        return note->kind == IBSHIFT_NODE_OFFERED ? take_offer(note, m)
                                                  : ibshift_nn_take_held(note, m);
    }
    if (ibshift_given_up_by(net->given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    note = ibshift_nn_note_post(peer, IBSHIFT_NODE_RECV, m);
    if (note == NULL) {
        return -ENOMEM;
    }
    ibshift_nn_enter(note);
    ibshift_nn_note_move(&peer->resting, note);
    if (is_long(nn, m->length)) {
        begin_long(note, m, false);
    } else if (ibshift_node_cost(m->length) > quota_left(peer)) {
        grant(peer, note);
    }
    return IBSHIFT_NET_PENDING;
}
