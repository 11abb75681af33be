/* Collectives that are given up, on this side or by a peer; and a peer in words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/gid.h"
#include "net/verbs/inside.h"

static bool is_of(const struct ibshift_note *note, uint32_t comm, uint32_t seq)
{
    return note->kind != IBSHIFT_NOTE_CONTROL && note->match.key.comm == comm &&
           note->match.key.seq == seq;
}

/* Ends what can end now, marks the rest; returns whether a buffer is granted or half written. */
static bool cancel_list(struct ibshift_net_verbs *nv, struct ibshift_notes *list, uint32_t comm,
                        uint32_t seq)
{
    struct ibshift_connection *c = list->first != NULL ? list->first->connection : NULL;
    struct ibshift_note *next;
    bool must_break = false;
    int held = 0;

    for (struct ibshift_note *n = list->first; n != NULL; n = next) {
        next = n->next;
        if (!is_of(n, comm, seq)) {
            continue;
        }
        if (ibshift_note_is_with_device(n)) {
            bool is_written = n->kind == IBSHIFT_NOTE_LONG && n->done == n->length;
            must_break |= !is_written;
            n->is_cancelled = !is_written;
            continue;
        }
        held += n->kind == IBSHIFT_NOTE_HELD;
        ibshift_nv_note_end(nv, n, -ECANCELED);
    }
    if (held > 0) {
        ibshift_nv_held_ended(nv, c); /* may find the connection broken, and end all notes */
    }
    return must_break;
}

void ibshift_nv_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    ibshift_given_up_add_here(&nv->given_up, comm, seq);
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        bool must_break = cancel_list(nv, &c->ready, comm, seq);
        must_break |= cancel_list(nv, &c->waiting, comm, seq);
        must_break |= cancel_list(nv, &c->slow, comm, seq);
        must_break |= cancel_list(nv, &c->resting, comm, seq);
        if (must_break) {
            const struct ibshift_given_up_comm *known = ibshift_given_up_comm(&nv->given_up, comm);
            c->root = known != NULL ? known->root : c->root;
            ibshift_nv_break(nv, c, -ECONNRESET,
                             "collective %u on communicator %u was given up "
                             "while the peer could write into its buffer",
                             seq, comm);
        }
    }
}

/*
 * A communicator that this side has given up, with the reason, which goes with every answer; and a
 * collective that a peer has given up: what waits for the peer ends, here and now. The peer has
 * cancelled its own messages before it says so, on the same queue pairs, so nothing of them
 * follows.
 */

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
static bool abort_list(struct ibshift_net_verbs *nv, struct ibshift_notes *list,
                       const struct ibshift_net_key *key)
{
    struct ibshift_note *next;
    bool is_granted = false;

    for (struct ibshift_note *n = list->first; n != NULL; n = next) {
        next = n->next;
        if (n->match.key.comm != key->comm || n->match.key.seq != key->seq) {
            continue;
        }
        if (n->kind == IBSHIFT_NOTE_RECV && n->is_granted) {
            is_granted = true;
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
    bool is_granted;

    ibshift_nv_cause_came(nv, c, why);
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
    is_granted = abort_list(nv, &c->ready, key);
    is_granted |= abort_list(nv, &c->waiting, key);
    is_granted |= abort_list(nv, &c->slow, key);
    is_granted |= abort_list(nv, &c->resting, key);
    if (is_granted) {
        c->root = *why; /* for the peer's other collectives, which end with the connection */
        ibshift_nv_break(nv, c, -ECONNABORTED,
                         "it gave up collective %u on communicator %u, whose buffer it may write",
                         key->seq, key->comm);
    }
}

/* A peer in words. */

static void address_text(const struct ibshift_verbs_address *a, unsigned path, char *out,
                         size_t size)
{
    char gid[46];

    if (a->is_ethernet) {
        snprintf(out, size, "%s", ibshift_gid_text(a->gid, gid));
    } else {
        snprintf(out, size, "lid %u gid %s", a->lid + path, ibshift_gid_text(a->gid, gid));
    }
}

static const char *state_text(const struct ibshift_connection *c)
{
    switch (c->state) {
    case IBSHIFT_CONNECTION_IDLE:
        return "not connected";
    case IBSHIFT_CONNECTION_SHAKING:
        return c->shake.has_theirs
                   ? "connecting: it has not confirmed yet"
                   : "connecting: no answer yet (it has not entered a collective, has died, or the "
                     "network does not carry datagrams to it: ibping, ping, GID index)";
    default:
        return "connected, no error so far";
    }
}

/* May run beside any other call: reads what is written once, and status before text. */
void ibshift_nv_describe(struct ibshift_net *net, uint32_t peer, char *text, size_t size)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, peer);
    char mine[80], theirs[80], ports[160], strangers[96] = "", given_up[128] = "";

    if (c == NULL) {
        snprintf(text, size, "peer %u: nothing was sent to it or received from it", peer);
        return;
    }
    const char *what = state_text(c);
    uint64_t cause = __atomic_load_n(&c->cause, __ATOMIC_RELAXED);
    if (cause != 0) {
        snprintf(given_up, sizeof(given_up), "; it failed with peer %u: %s",
                 (uint32_t)(cause >> 32), strerror((int)(cause & 0xffff)));
    }
    if (__atomic_load_n(&c->status, __ATOMIC_ACQUIRE) != 0) {
        what = c->text != NULL ? c->text : "out of memory";
    }
    if (c->card.ports == 0) {
        snprintf(text, size, "peer %u: %s", peer, what);
        return;
    }
    if (c->state == IBSHIFT_CONNECTION_SHAKING && nv->strangers > 0) {
        snprintf(strangers, sizeof(strangers),
                 "; %u datagrams here did not come from the address of their sender",
                 nv->strangers);
    }
    ibshift_verbs_describe(nv->verbs, ports, sizeof(ports));
    address_text(&nv->verbs->blob.address[0], 0, mine, sizeof(mine));
    address_text(&c->card.address[0], c->path, theirs, sizeof(theirs));
    snprintf(text, size,
             "peer %u on %s (%s, queue pair 0x%x) from %s (%s, queue pair 0x%x): %s%s%s", peer,
             c->card.hostname, theirs, c->their_qpn, ports, mine, c->my_qpn, what, given_up,
             strangers);
}
