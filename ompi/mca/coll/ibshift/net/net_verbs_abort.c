/*
 * A collective that a peer has given up: what waits for the peer ends, here and now. The peer has
 * cancelled its own messages before it says so, on the same queue pairs, so nothing of them
 * follows.
 */
#include <errno.h>

#include "net/net_verbs_priv.h"

void ibshift_nv_abort(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer(nv, peer);
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (c == NULL || c->status != 0) {
        return; /* a broken connection tells the peer by itself */
    }
    ibshift_nv_connect(nv, c);
    if (c->status == 0) {
        ibshift_nv_control(nv, c, &key, IBSHIFT_WIRE_ABORT, NULL);
    }
}

int ibshift_nv_is_aborted(const struct ibshift_net_verbs *nv, uint32_t peer,
                          const struct ibshift_net_key *key)
{
    uint32_t n = nv->aborts < IBSHIFT_DROPPED ? nv->aborts : IBSHIFT_DROPPED;

    for (uint32_t i = 0; i < n; i++) {
        if (nv->aborted[i].peer == peer && nv->aborted[i].comm == key->comm &&
            nv->aborted[i].seq == key->seq) {
            return 1;
        }
    }
    return 0;
}

/* Returns whether a buffer is still granted to the peer: only a break takes that back. */
static int end_list(struct ibshift_net_verbs *nv, struct ibshift_notes *list,
                    const struct ibshift_net_key *key)
{
    struct ibshift_note *next;
    int is_granted = 0;

    for (struct ibshift_note *n = list->first; n != NULL; n = next) {
        next = n->next;
        if (n->match.key.comm != key->comm || n->match.key.seq != key->seq) {
            continue;
        }
        if (n->kind == IBSHIFT_NOTE_RECV && n->is_granted) {
            is_granted = 1;
        } else if (n->kind == IBSHIFT_NOTE_RECV || n->kind == IBSHIFT_NOTE_SEND ||
                   (n->kind == IBSHIFT_NOTE_LONG && n->done == 0)) {
            ibshift_nv_note_end(nv, n, -ECONNABORTED);
        }
    }
    return is_granted;
}

void ibshift_nv_abort_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                           const struct ibshift_net_key *key)
{
    uint32_t place = nv->aborts++ % IBSHIFT_DROPPED;
    int is_granted;

    nv->aborted[place].peer = c->peer;
    nv->aborted[place].comm = key->comm;
    nv->aborted[place].seq = key->seq;
    is_granted = end_list(nv, &c->ready, key);
    is_granted |= end_list(nv, &c->waiting, key);
    is_granted |= end_list(nv, &c->resting, key);
    if (is_granted) {
        ibshift_nv_break(nv, c, -ECONNABORTED,
                         "it gave up collective %u on communicator %u, whose buffer it may write",
                         key->seq, key->comm);
    }
}
