/*
 * A communicator that this side has given up, with the reason, which goes with every answer; and a
 * collective that a peer has given up: what waits for the peer ends, here and now. The peer has
 * cancelled its own messages before it says so, on the same queue pairs, so nothing of them
 * follows.
 */
#include <errno.h>
#include <stdlib.h>

#include "net/verbs/private.h"

/*
 * Asked for so long, while we looked, about a communicator that is not here: it is not being made
 * any more. Questions with longer pauses between them are about different ones.
 */
static const uint64_t in_vain = 3000 * 1000 * 1000ull,
                      longest_pause = 5000 * 1000 * 1000ull; /* ns */

static struct ibshift_given_up *find_given_up(const struct ibshift_net_verbs *nv, uint32_t comm)
{
    for (uint32_t i = 0; i < nv->given_up_count; i++) {
        if (nv->given_up[i].comm == comm) {
            return &nv->given_up[i];
        }
    }
    return NULL;
}

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

    if (find_given_up(nv, comm) != NULL) {
        return;
    }
    if (nv->given_up_count == nv->given_up_room) {
        uint32_t room = nv->given_up_room * 2 + 8;
        void *bigger = realloc(nv->given_up, room * sizeof(*nv->given_up));
        if (bigger == NULL) {
            return; /* the peers of this collective are told all the same */
        }
        nv->given_up = bigger;
        nv->given_up_room = room;
    }
    nv->given_up[nv->given_up_count++] =
        (struct ibshift_given_up){.comm = comm, .with = *why, .root = root_of(nv, why)};
}

int ibshift_nv_is_given_up(const struct ibshift_net_verbs *nv, uint32_t comm)
{
    const struct ibshift_given_up *given_up = find_given_up(nv, comm);

    return given_up != NULL && !given_up->is_gone;
}

bool ibshift_nv_has_given_up(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why)
{
    const struct ibshift_net_verbs *nv = ibshift_nv(net);

    if (!ibshift_nv_is_given_up(nv, comm)) {
        return false;
    }
    *why = find_given_up(nv, comm)->with;
    return true;
}

void ibshift_nv_enter(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    for (uint32_t i = nv->given_up_count; i-- > 0;) {
        if (nv->given_up[i].comm == comm) {
            nv->given_up[i] = nv->given_up[--nv->given_up_count];
        }
    }
    for (uint32_t i = 0; i < IBSHIFT_ASKED; i++) {
        if (nv->asked[i].comm == comm) {
            nv->asked[i].last = 0;
        }
    }
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
        const struct ibshift_given_up *given_up = find_given_up(nv, comm);
        send_abort(nv, c, &key,
                   given_up != NULL ? &given_up->root : &(struct ibshift_net_cause){0, 0});
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

/* Counts the questions after a communicator that is not here. */
static int is_asked_in_vain(struct ibshift_net_verbs *nv, uint32_t comm)
{
    uint64_t now = ibshift_net_now(&nv->net);
    uint32_t i = 0;

    while (i < IBSHIFT_ASKED &&
           (nv->asked[i].comm != comm || now - nv->asked[i].last > longest_pause)) {
        i++;
    }
    if (i == IBSHIFT_ASKED) {
        i = nv->asks++ % IBSHIFT_ASKED;
        nv->asked[i].comm = comm;
        nv->asked[i].first = now;
    }
    nv->asked[i].last = now;
    return now - nv->asked[i].first > in_vain;
}

/*
 * The peer waits in a collective that this side may never come to: it has left the communicator
 * after an error, or an error in the one that it was being made from has kept it from being made
 * here. Without any error the communicator is only late.
 */
void ibshift_nv_ask_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibshift_net_key *key)
{
    const struct ibshift_given_up *given_up = find_given_up(nv, key->comm);

    if ((given_up == NULL || given_up->is_gone) && nv->given_up_count > 0) {
        bool is_here =
            nv->options.has_comm == NULL || nv->options.has_comm(nv->options.context, key->comm);
        given_up = given_up != NULL ? given_up : &nv->given_up[nv->given_up_count - 1];
        given_up = !is_here && is_asked_in_vain(nv, key->comm) ? given_up : NULL;
    }
    if (given_up != NULL) {
        send_abort(nv, c, key, &given_up->root);
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
    if (held > 0) {
        ibshift_nv_held_ended(nv, c);
    }
}

void ibshift_nv_forget(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_given_up *given_up = find_given_up(nv, comm);
    uint32_t kept = 0;

    if (given_up != NULL) {
        given_up->is_gone = 1;
    }
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
