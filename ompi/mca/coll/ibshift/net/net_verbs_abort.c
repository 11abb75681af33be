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
    for (uint32_t i = 0; i < nv->aborts; i++) {
        if (nv->aborted[i].peer == peer && nv->aborted[i].comm == key->comm &&
            nv->aborted[i].seq == key->seq) {
            return 1;
        }
    }
    return 0;
}

/* The collective has been here and has failed: nobody asks for it again. */
void ibshift_nv_passed(struct ibshift_net_verbs *nv, uint32_t comm, uint32_t seq)
{
    for (uint32_t i = nv->aborts; i-- > 0;) {
        if (nv->aborted[i].comm == comm && nv->aborted[i].seq == seq) {
            nv->aborted[i] = nv->aborted[--nv->aborts];
        }
    }
}

/* Early messages, and early requests for messages, of a communicator that is gone. */
static void drop_early(struct ibshift_net_verbs *nv, struct ibshift_connection *c, uint32_t comm)
{
    struct ibshift_note *next;
    int held = 0;

    for (struct ibshift_note *n = c->resting.first; n != NULL; n = next) {
        next = n->next;
        if (n->match.key.comm == comm &&
            (n->kind == IBSHIFT_NOTE_HELD || (n->kind == IBSHIFT_NOTE_GRANT && n->is_pulled))) {
            held += n->kind == IBSHIFT_NOTE_HELD;
            ibshift_nv_note_end(nv, n, 0);
        }
    }
    for (; held > 0 && c->status == 0; held--) {
        ibshift_nv_quota_back(nv, c);
    }
}

void ibshift_nv_forget(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    uint32_t kept = 0;

    if (nv->drops + nv->aborts == 0) {
        return; /* nothing ever failed: all messages have met */
    }
    if (nv->drops > IBSHIFT_DROPPED) {
        nv->drops = IBSHIFT_DROPPED;
    }
    for (uint32_t i = 0; i < nv->drops; i++) {
        if (nv->dropped[i].comm != comm) {
            nv->dropped[kept++] = nv->dropped[i];
        }
    }
    nv->drops = kept;
    for (uint32_t i = nv->aborts; i-- > 0;) {
        if (nv->aborted[i].comm == comm) {
            nv->aborted[i] = nv->aborted[--nv->aborts];
        }
    }
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        drop_early(nv, nv->connections[i], comm);
    }
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
    int is_granted;

    if (ibshift_nv_is_dropped(nv, key) || ibshift_nv_is_aborted(nv, c->peer, key)) {
        return;
    }
    if (nv->aborts == IBSHIFT_ABORTED) {
        ibshift_nv_break(nv, c, -ECONNABORTED,
                         "it gave up more collectives than can be remembered, the last was %u on "
                         "communicator %u",
                         key->seq, key->comm);
        return;
    }
    nv->aborted[nv->aborts].peer = c->peer;
    nv->aborted[nv->aborts].comm = key->comm;
    nv->aborted[nv->aborts++].seq = key->seq;
    is_granted = end_list(nv, &c->ready, key);
    is_granted |= end_list(nv, &c->waiting, key);
    is_granted |= end_list(nv, &c->slow, key);
    is_granted |= end_list(nv, &c->resting, key);
    if (is_granted) {
        ibshift_nv_break(nv, c, -ECONNABORTED,
                         "it gave up collective %u on communicator %u, whose buffer it may write",
                         key->seq, key->comm);
    }
}
