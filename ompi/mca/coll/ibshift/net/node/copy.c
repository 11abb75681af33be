/*
 * Long messages, which the kernel copies from buffer to buffer: the receiver fetches them, or the sender writes where
 * a grant says. Whoever fetches looks afterwards whether the offer still stands: a sender that takes it
 * back says so before the buffer is used again.
 */
#include <errno.h>
#include <sys/uio.h>

#include "net/node/private.h"

/* Of one call of the kernel, in a turn: polls in between serve others. A call takes as long as 20 KiB of its copy. */
enum { PIECE = 1024 * 1024 };

static const uint64_t fresh = 100 * 1000 * 1000; /* ns: a pid does not come back so soon */

int ibshift_nn_copy(struct ibshift_node_peer *peer, struct ibshift_node_note *note)
{
    uint64_t left = note->length - note->done;
    struct iovec here = {.iov_base = note->buffer + note->done,
                         .iov_len = left < PIECE ? left : PIECE};
    struct iovec there = {.iov_base = (void *)(uintptr_t)(note->target + note->done),
                          .iov_len = here.iov_len};
    pid_t pid = (pid_t)peer->card.pid;
    ssize_t n;

    if (ibshift_net_now(&peer->net->net) - note->since > fresh && !ibshift_nn_check_alive(peer)) {
        return peer->status;
    }
    n = note->kind == IBSHIFT_NODE_RECV ? process_vm_readv(pid, &here, 1, &there, 1, 0)
                                        : process_vm_writev(pid, &here, 1, &there, 1, 0);
    if (n <= 0) {
        if (!ibshift_nn_check_alive(peer)) {
            return peer->status;
        }
        peer->reach = IBSHIFT_NODE_CANNOT; /* all of it through the ring, from the start */
        note->target = 0;
        note->done = 0;
        return -EPERM;
    }
    note->done += (uint64_t)n;
    note->since = ibshift_net_now(&peer->net->net);
    return note->done == note->length ? 0 : -EAGAIN;
}

int ibshift_nn_fetch(struct ibshift_node_peer *peer, struct ibshift_node_note *recv)
{
    int rc = recv->done < recv->length ? ibshift_nn_copy(peer, recv) : 0;

    if (rc == -EPERM) {
        recv->is_fetched = false;
        recv->is_granted = true;
        ibshift_nn_note_move(&peer->resting, recv);
        ibshift_nn_tell(peer, IBSHIFT_NODE_GRANT, &recv->match.key, recv->length, 0);
        return peer->status;
    }
    if (rc == 0) {
        ibshift_nn_fence();
        peer->net->take(peer);
        if (recv->list != &peer->ready) {
            return peer->status; /* it was withdrawn */
        }
        rc = ibshift_nn_put_news(peer, IBSHIFT_NODE_TAKEN, &recv->match.key, recv->length, 0);
    }
    if (rc == 0) {
        ibshift_nn_note_end(recv, 0);
    }
    return rc;
}
