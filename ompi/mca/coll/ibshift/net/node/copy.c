/*
 * Long messages, which the kernel copies from buffer to buffer. The receiver fetches them. Where it has told the
 * sender of a share, that one writes parts of them when it has nothing else to do: each side takes the
 * next part, and then copies it, so who is there copies, and nobody waits for who is not.
 * Whoever fetches looks afterwards whether the offer still stands: a sender that takes it back says so before
 * the buffer is used again.
 */
#include <errno.h>
#include <sys/uio.h>

#include "net/node/private.h"

/*
 * Of one call of the kernel, in a turn: polls in between serve others. A call takes as long as 20 KiB of
 * its copy, so what is left is divided while the parts are several times that.
 */
enum { PIECE = 1024 * 1024, LEAST = 64 * 1024, PAGE = 4096 };

static const uint64_t fresh = 100 * 1000 * 1000; /* ns: a pid does not come back so soon */

static uint64_t part(const struct ibshift_node_note *note, uint64_t left)
{
    uint64_t n = note->is_halved && left >= 2 * LEAST ? (left / 2 + PAGE - 1) / PAGE * PAGE : left;

    return n < PIECE ? n : PIECE;
}

/* The next part for this side begins at *at: its bytes, 0 when all is taken. */
static uint64_t take_part(const struct ibshift_node_note *note, uint64_t *at)
{
    uint64_t turn = ibshift_nn_turn(note), seen, n;
    _Atomic uint64_t *taken = ibshift_nn_taken(note);

    if (note->share == 0) {
        *at = note->done;
        return part(note, note->length - note->done);
    }
    seen = atomic_load_explicit(taken, memory_order_relaxed);
    do {
        *at = seen - turn; /* of a later turn: more than any message has */
        if (*at >= note->length) {
            return 0;
        }
        n = part(note, note->length - *at);
    } while (!atomic_compare_exchange_weak(taken, &seen, seen + n));
    return n;
}

/* 0; -EPERM: the kernel refuses. Anything else: the peer has failed, and the note has ended. */
static int copy(struct ibshift_node_note *note, uint64_t at, uint64_t n)
{
    struct ibshift_node_peer *peer = note->peer;
    pid_t pid = (pid_t)peer->card.pid;

    if (ibshift_net_now(&peer->net->net) - note->since > fresh && !ibshift_nn_check_alive(peer)) {
        return peer->status;
    }
    while (n > 0) {
        struct iovec here = {.iov_base = note->buffer + at, .iov_len = n};
        struct iovec there = {.iov_base = (void *)(uintptr_t)(note->target + at), .iov_len = n};
        ssize_t some = note->kind == IBSHIFT_NODE_RECV
                           ? process_vm_readv(pid, &here, 1, &there, 1, 0)
                           : process_vm_writev(pid, &here, 1, &there, 1, 0);

        if (some <= 0) {
            if (!ibshift_nn_check_alive(peer)) {
                return peer->status;
            }
            peer->reach = IBSHIFT_NODE_CANNOT;
            return -EPERM;
        }
        at += (uint64_t)some;
        n -= (uint64_t)some;
        note->done += (uint64_t)some;
    }
    note->since = ibshift_net_now(&peer->net->net);
    return 0;
}

/* All of it through the ring, from the start. */
static int leave_kernel(struct ibshift_node_peer *peer, struct ibshift_node_note *recv)
{
    (void)ibshift_nn_close_share(recv);
    recv->target = 0;
    recv->done = 0;
    recv->is_fetched = false;
    recv->is_granted = true;
    ibshift_nn_note_move(&peer->resting, recv);
    ibshift_nn_tell(peer, IBSHIFT_NODE_GRANT, &recv->match.key, recv->length, 0);
    return peer->status;
}

int ibshift_nn_fetch(struct ibshift_node_peer *peer, struct ibshift_node_note *recv)
{
    uint64_t at, n = recv->done < recv->length ? take_part(recv, &at) : 0;
    int rc = n > 0 ? copy(recv, at, n) : 0;

    if (rc != 0) {
        return rc == -EPERM ? leave_kernel(peer, recv) : rc;
    }
    if (recv->done < recv->length) {
        if (n == 0) {
            ibshift_nn_note_move(&peer->resting, recv); /* the sender has yet to write its parts */
        }
        return n == 0 ? 0 : -EAGAIN;
    }
    ibshift_nn_fence();
    peer->net->take(peer);
    if (recv->list != &peer->ready) {
        return peer->status; /* it was withdrawn */
    }
    rc = ibshift_nn_put_news(peer, IBSHIFT_NODE_TAKEN, &recv->match.key, recv->length, 0);
    if (rc == 0) {
        ibshift_nn_note_end(recv, 0);
        rc = 1; /* who waits for it goes on with it before the next one is fetched */
    }
    return rc;
}

/* The kernel lets this side write nothing: what it has taken, and all else, is the receiver's to fetch. */
static void offer_anew(struct ibshift_node_peer *peer, struct ibshift_node_note *send)
{
    if (ibshift_nn_put_news(peer, IBSHIFT_NODE_WITHDRAWN, &send->match.key, send->length, 0) == 0) {
        ibshift_match_remove(&send->match);
        ibshift_nn_stop_helping(send);
        send->is_fetched = true;
        ibshift_nn_note_move(&peer->ready, send);
    }
}

void ibshift_nn_begin_to_help(struct ibshift_node_note *send, uint64_t target, uint32_t share)
{
    struct ibshift_node_peer *peer = send->peer;

    if (target != 0 && ibshift_nn_can_copy(peer)) {
        send->target = target;
        send->share = share;
        send->is_halved = true;
        send->done = 0;
        ibshift_nn_note_move(&peer->helping, send);
    }
}

void ibshift_nn_stop_helping(struct ibshift_node_note *send)
{
    send->share = 0;
    send->target = 0;
    send->done = 0;
    ibshift_nn_note_move(&send->peer->resting, send);
}

/* In an exchange each side fetches first: a line that is written is moved twice. */
void ibshift_nn_help(struct ibshift_node_peer *peer)
{
    struct ibshift_node_note *send = peer->helping.first;
    uint64_t at, n;
    int rc;

    if (peer->longs > 0) {
        return;
    }
    n = peer->reach == IBSHIFT_NODE_CAN ? take_part(send, &at) : 0;
    rc = n > 0 ? copy(send, at, n) : 0;
    if (rc == 0 && peer->reach == IBSHIFT_NODE_CANNOT) {
        rc = -EPERM;
    }
    if (rc == -EPERM) {
        offer_anew(peer, send);
    } else if (rc == 0 && *ibshift_nn_taken(send) - ibshift_nn_turn(send) >= send->length &&
               (send->done == 0 || ibshift_nn_put_news(peer, IBSHIFT_NODE_DONE, &send->match.key,
                                                       send->length, send->done) == 0)) {
        ibshift_nn_stop_helping(send);
    }
}
