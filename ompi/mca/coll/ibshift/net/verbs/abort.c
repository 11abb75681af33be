/*
 * A communicator that this side has given up, with the reason, which goes with every answer; and a
 * collective that a peer has given up: what waits for the peer ends, here and now. The peer has
 * cancelled its own messages before it says so, on the same queue pairs, so nothing of them
 * follows.
 */
#include <errno.h>

#include "net/verbs/private.h"

/* What a peer gave up because of another one began with that one. */
static struct ibshift_net_cause root_of(const struct ibshift_net_verbs *nv,
                                        const struct ibshift_net_cause *why)
{
    const struct ibshift_connection *c = ibshift_nv_peer_known(nv, why->peer);

    if (why->status != -ECONNABORTED || c == NULL || c->cause == 0) {
        return *why;
    }
    return (struct ibshift_net_cause){.peer = (uint32_t)(c->cause >> 32),
                                      .status = -(int32_t)(c->cause & 0xffff)};
}

void ibshift_nv_give_up(struct ibshift_net *net, uint32_t comm, const struct ibshift_net_cause *why)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_net_cause root = root_of(nv, why);

    ibshift_given_up_add_comm(&nv->given_up, comm, why, &root);
}

bool ibshift_nv_has_given_up(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why)
{
    const struct ibshift_given_up_comm *known =
        ibshift_given_up_comm(&ibshift_nv(net)->given_up, comm);

    if (known == NULL || known->is_gone) {
        return false;
    }
    *why = known->with;
    return true;
}

void ibshift_nv_enter(struct ibshift_net *net, uint32_t comm)
{
    ibshift_given_up_enter(&ibshift_nv(net)->given_up, comm);
}

static void send_abort(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                       const struct ibshift_net_key *key, const struct ibshift_net_cause *why)
{
    struct ibshift_wire_grant body = {.id = why->peer, .pieces = (uint32_t)-why->status};

    ibshift_nv_control(nv, c, key, IBSHIFT_WIRE_ABORT, &body);
}

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
        const struct ibshift_given_up_comm *known = ibshift_given_up_comm(&nv->given_up, comm);
        send_abort(nv, c, &key, known != NULL ? &known->root : &(struct ibshift_net_cause){0, 0});
    }
}

void ibshift_nv_ask_after(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, peer);
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (c != NULL && c->state == IBSHIFT_CONNECTION_READY && c->ready.first == NULL) {
        ibshift_nv_control(nv, c, &key, IBSHIFT_WIRE_ASK, NULL);
    }
}

/* The peer waits in a collective that this side may never come to. */
void ibshift_nv_ask_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibshift_net_key *key)
{
    const struct ibshift_net_cause *why =
        ibshift_given_up_answer(&nv->given_up, key->comm, ibshift_net_now(&nv->net),
                                nv->options.has_comm, nv->options.context);

    if (why != NULL) {
        send_abort(nv, c, key, why);
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
    if (held > 0) {
        ibshift_nv_held_ended(nv, c);
    }
}

void ibshift_nv_forget(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    if (!ibshift_given_up_forget(&nv->given_up, comm)) {
        return; /* nothing ever failed: all messages have met */
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
                           const struct ibshift_net_key *key, const struct ibshift_net_cause *why)
{
    int is_granted;

    if (why->status == -ETIMEDOUT) {
        ibshift_nv_reported(nv, why->peer, c->peer);
    }
    if (why->status < 0) {
        __atomic_store_n(&c->cause, (uint64_t)why->peer << 32 | (uint32_t)-why->status,
                         __ATOMIC_RELAXED); /* describe() looks at it */
    }
    if (ibshift_given_up_here(&nv->given_up, key) ||
        ibshift_given_up_by(&nv->given_up, c->peer, key)) {
        return;
    }
    if (!ibshift_given_up_add_by(&nv->given_up, c->peer, key)) {
        ibshift_nv_break(nv, c, -ECONNABORTED,
                         "it gave up more collectives than can be remembered, the last was %u on "
                         "communicator %u",
                         key->seq, key->comm);
        return;
    }
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
