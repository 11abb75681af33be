/*
 * Long messages, copied by the kernel from buffer to buffer: the sender writes where the grant
 * says; or, where the receiver reads them at once, the receiver fetches them, so that they come to
 * be in its own caches. A fetch ends with the sender's word that it still had the message then.
 */
#include "net/node/private.h"

#include <sys/uio.h>

#include <errno.h>

enum {
    PIECE = 256 * 1024, /* one call of the kernel: polls in between serve others */
    PIECES = 4,
};

static const uint64_t fresh = 100 * 1000 * 1000; /* ns: a pid does not come back so soon */

int ibshift_nn_copy(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                    struct ibshift_node_note *note)
{
    if (ibshift_net_now(&nn->net) - note->since > fresh && !ibshift_nn_check_alive(nn, peer)) {
        return peer->status;
    }
    for (int i = 0; i < PIECES && note->done < note->length; i++) {
        uint64_t left = note->length - note->done;
        struct iovec here = {.iov_base = note->buffer + note->done,
                             .iov_len = left < PIECE ? left : PIECE};
        struct iovec there = {.iov_base = (void *)(uintptr_t)(note->target + note->done),
                              .iov_len = here.iov_len};
        pid_t pid = (pid_t)peer->card.pid;
        ssize_t n = note->kind == IBSHIFT_NODE_RECV
                        ? process_vm_readv(pid, &here, 1, &there, 1, 0)
                        : process_vm_writev(pid, &here, 1, &there, 1, 0);

        if (n <= 0) {
            if (!ibshift_nn_check_alive(nn, peer)) {
                return peer->status;
            }
            peer->reach = IBSHIFT_NODE_CANNOT; /* all of it through the ring, from the start */
            note->target = 0;
            note->done = 0;
            return -EPERM;
        }
        note->done += (uint64_t)n;
    }
    note->since = ibshift_net_now(&nn->net);
    return note->done == note->length ? 0 : -EAGAIN;
}

int ibshift_nn_offer(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                     struct ibshift_node_note *send)
{
    int rc = ibshift_nn_put_news(peer, IBSHIFT_NODE_OFFER, &send->match.key, send->length,
                                 (uint64_t)(uintptr_t)send->buffer);

    if (rc == 0) {
        send->is_fetched = false;
        send->is_granted = false;
        send->is_direct = true;
        ibshift_nn_enter(&nn->tx, send);
        ibshift_nn_note_move(&peer->resting, send);
    }
    return rc;
}

void ibshift_nn_offer_came(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                           const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note =
        (struct ibshift_node_note *)ibshift_match_find(&nn->rx, peer->number, &cell->key);

    if (note == NULL || !note->is_fetched || note->is_revoking) {
        return; /* ended meanwhile, or about to */
    }
    if (note->length != cell->grant.length) {
        ibshift_nn_mismatch(nn, peer, &cell->key, note->length, cell->grant.length);
        return;
    }
    note->is_fetched = false;
    note->target = cell->grant.address;
    note->since = ibshift_net_now(&nn->net);
    ibshift_nn_note_move(&peer->ready, note);
}

int ibshift_nn_fetch(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                     struct ibshift_node_note *recv)
{
    int rc = recv->done < recv->length ? ibshift_nn_copy(nn, peer, recv) : 0;

    if (rc == 0) {
        rc = ibshift_nn_put_news(peer, IBSHIFT_NODE_TAKEN, &recv->match.key, recv->length, 0);
    }
    if (rc == 0 || rc == -EPERM) {
        ibshift_nn_note_move(&peer->resting, recv);
    }
    if (rc == -EPERM) {
        ibshift_nn_tell(nn, peer, IBSHIFT_NODE_GRANT, &recv->match.key, recv->length, 0);
        rc = peer->status;
    }
    return rc;
}

void ibshift_nn_taken_came(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                           const struct ibshift_node_cell *cell)
{
    struct ibshift_node_note *note =
        (struct ibshift_node_note *)ibshift_match_find(&nn->tx, peer->number, &cell->key);

    if (note == NULL || note->kind != IBSHIFT_NODE_SEND || !note->is_direct) {
        return; /* given up here: the receiver is told so */
    }
    nn->stats.direct++;
    nn->stats.bytes += note->length;
    ibshift_nn_tell(nn, peer, IBSHIFT_NODE_DONE, &cell->key, note->length, 0);
    ibshift_nn_note_end(nn, note, peer->status);
}
