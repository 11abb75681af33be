/*
 * Messages that are tried, not posted: some looks at the one cell that the peer writes next, and
 * the bytes go from the box to who waits for them.
 */
#include "net/node/private.h"

#include <string.h>

static bool is_there_soon(const struct ibshift_net_node *nn, struct ibshift_node_peer *peer)
{
    for (uint32_t i = 0; i < nn->options.looks; i++) {
        if (ibshift_node_has_cell(peer)) {
            return true;
        }
    }
    return false;
}

/* Of a message that nobody has posted a receive for. */
static bool try_held(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                     const struct ibshift_net_message *m)
{
    struct ibshift_node_note *held =
        nn->rx.count > 0 ? (struct ibshift_node_note *)ibshift_match_find(&nn->rx, m->peer, &m->key)
                         : NULL;

    return held != NULL && held->kind == IBSHIFT_NODE_HELD && held->length == m->length &&
           held->done == held->length &&
           ibshift_nn_take_held(nn, peer, held, m) == IBSHIFT_NET_DONE;
}

static bool is_of(const struct ibshift_node_cell *cell, const struct ibshift_net_message *m)
{
    return cell->flags == 0 && memcmp(&m->key, &cell->key, sizeof(m->key)) == 0;
}

/* The part of the message that follows so many bytes of it. */
static bool is_part(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                    const struct ibshift_node_cell *cell, const struct ibshift_net_message *m,
                    uint64_t done)
{
    return cell->kind == IBSHIFT_NODE_PART && is_of(cell, m) && cell->part.length == m->length &&
           cell->part.offset == done && ibshift_nn_is_part_right(nn, peer, cell);
}

/* The rest is late: what has come is held until it does. */
static void hold(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                 const struct ibshift_net_message *m, uint64_t done)
{
    struct ibshift_node_note *note = ibshift_nn_hold(nn, peer, &m->key, m->length);

    if (note != NULL) {
        memcpy(note->buffer, m->buffer, done);
        note->done = done;
    }
}

/* From its first part on. Its sender has put all of it into the box, or is about to. */
static bool take_parts(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                       struct ibshift_node_cell *cell, const struct ibshift_net_message *m)
{
    uint64_t done = 0;

    for (;;) {
        ibshift_nn_take_part(nn, peer, (uint8_t *)m->buffer + done, cell->size);
        done += cell->size;
        if (done == m->length) {
            ibshift_nn_give_back(peer, m->length);
            return true;
        }
        if (!is_there_soon(nn, peer)) {
            hold(nn, peer, m, done);
            return false;
        }
        ibshift_node_take_cell(peer, cell);
        if (!is_part(nn, peer, cell, m, done)) {
            if (peer->status == 0) {
                hold(nn, peer, m, done);
            }
            if (peer->status == 0) {
                ibshift_nn_cell_came(nn, peer, cell);
            }
            return false;
        }
    }
}

/* A cell that was taken. True: it was the message, or began it, and all of that has come. */
static bool take(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                 struct ibshift_node_cell *cell, const struct ibshift_net_message *m)
{
    if (cell->kind == IBSHIFT_NODE_DATA && is_of(cell, m) && cell->size == m->length &&
        cell->size <= IBSHIFT_NODE_CELL_DATA && ibshift_nn_count_quota(nn, peer, m->length)) {
        if (cell->size > 0) {
            memcpy(m->buffer, cell->data, cell->size);
        }
        ibshift_nn_give_back(peer, cell->size);
        return true;
    }
    if (peer->status == 0 && is_part(nn, peer, cell, m, 0) &&
        ibshift_nn_count_quota(nn, peer, m->length)) {
        return take_parts(nn, peer, cell, m);
    }
    if (peer->status == 0) {
        ibshift_nn_cell_came(nn, peer, cell);
    }
    return false;
}

bool ibshift_nn_try_recv(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *peer = ibshift_nn_peer(nn, m->peer);
    struct ibshift_node_cell cell;

    if (peer == NULL || peer->status != 0 ||
        (nn->given_up.peer_count > 0 && ibshift_given_up_by(&nn->given_up, m->peer, &m->key))) {
        return false;
    }
    if (try_held(nn, peer, m)) {
        return true;
    }
    for (int i = 0; i < IBSHIFT_NODE_CELLS && peer->status == 0 && is_there_soon(nn, peer); i++) {
        ibshift_node_take_cell(peer, &cell);
        if (take(nn, peer, &cell, m) || try_held(nn, peer, m)) {
            return true;
        }
    }
    return false;
}
