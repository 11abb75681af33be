#include "net/given_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Asked for so long, while we looked, about a communicator that is not here: it is not being made
 * any more. Questions with longer pauses between them are about different ones.
 */
static const uint64_t in_vain = 3000 * 1000 * 1000ull,
                      longest_pause = 5000 * 1000 * 1000ull; /* ns */

void ibshift_given_up_free(struct ibshift_given_up *given_up)
{
    if (given_up->failed != given_up->few) {
        free(given_up->failed);
    }
}

static uint32_t of_ring(uint32_t count, uint32_t size)
{
    return count < size ? count : size;
}

static uint32_t remembered(const struct ibshift_given_up *given_up)
{
    return of_ring(given_up->here_count, IBSHIFT_GIVEN_UP_HERE);
}

static uint32_t remembered_by(const struct ibshift_given_up *given_up)
{
    return of_ring(given_up->peer_count, IBSHIFT_GIVEN_UP_BY_PEERS);
}

static bool is_among(const struct ibshift_given_up_one *list, uint32_t count, uint32_t peer,
                     const struct ibshift_net_key *key)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].peer == peer && ibshift_net_is_of(key, list[i].comm, list[i].seq)) {
            return true;
        }
    }
    return false;
}

/* seq NULL: all of the communicator. How many are left. */
static uint32_t remove_all(struct ibshift_given_up_one *list, uint32_t count, uint32_t comm,
                           const uint32_t *seq)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (list[i].comm != comm || (seq != NULL && list[i].seq != *seq)) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

bool ibshift_given_up_here(const struct ibshift_given_up *given_up,
                           const struct ibshift_net_key *key)
{
    const struct ibshift_given_up_comm *comm = ibshift_given_up_comm(given_up, key->comm);

    return (comm != NULL && !comm->is_gone) ||
           is_among(given_up->here, remembered(given_up), IBSHIFT_ANY_MEMBER, key);
}

bool ibshift_given_up_by_some(const struct ibshift_given_up *given_up, uint32_t peer,
                              const struct ibshift_net_key *key)
{
    return is_among(given_up->by_peers, remembered_by(given_up), peer, key);
}

/* Two nets that are one both cancel: once is enough. */
void ibshift_given_up_add_here(struct ibshift_given_up *given_up, uint32_t comm, uint32_t seq)
{
    const struct ibshift_net_key key = {.comm = ibshift_net_comm(comm), .seq = seq};

    if (is_among(given_up->here, remembered(given_up), IBSHIFT_ANY_MEMBER, &key)) {
        return;
    }
    given_up->has_remains = true;
    given_up->here[given_up->here_count++ % IBSHIFT_GIVEN_UP_HERE] =
        (struct ibshift_given_up_one){.peer = IBSHIFT_ANY_MEMBER, .comm = key.comm, .seq = seq};
    given_up->peer_count = remove_all(given_up->by_peers, remembered_by(given_up), key.comm, &seq);
}

void ibshift_given_up_add_by(struct ibshift_given_up *given_up, uint32_t peer,
                             const struct ibshift_net_key *key)
{
    given_up->has_remains = true;
    given_up->by_peers[given_up->peer_count++ % IBSHIFT_GIVEN_UP_BY_PEERS] =
        (struct ibshift_given_up_one){
            .peer = peer, .comm = ibshift_net_comm(key->comm), .seq = key->seq};
}

void ibshift_given_up_heard(const struct ibshift_given_up *given_up, uint32_t peer,
                            const struct ibshift_net_cause *why)
{
    if (why->status == -ETIMEDOUT && given_up->heard_dead != NULL) {
        given_up->heard_dead(given_up->owner, why->peer, peer);
    }
}

bool ibshift_given_up_is_dead(const struct ibshift_given_up *given_up, uint32_t peer)
{
    for (uint32_t i = 0; i < given_up->comm_count; i++) {
        if (given_up->failed[i].root.status == -ETIMEDOUT &&
            given_up->failed[i].root.peer == peer) {
            return true;
        }
    }
    return false;
}

struct ibshift_given_up_comm *ibshift_given_up_comm(const struct ibshift_given_up *given_up,
                                                    uint32_t word)
{
    for (uint32_t i = 0; i < given_up->comm_count; i++) {
        if (given_up->failed[i].comm == ibshift_net_comm(word)) {
            return &given_up->failed[i];
        }
    }
    return NULL;
}

/* Without memory the oldest is forgotten. */
static void make_room(struct ibshift_given_up *given_up)
{
    struct ibshift_given_up_comm *old = given_up->failed, *bigger;
    uint32_t room = given_up->comm_room * 2;

    if (old == NULL) {
        given_up->failed = given_up->few;
        given_up->comm_room = IBSHIFT_GIVEN_UP_COMMS;
    } else if ((bigger = malloc(room * sizeof(*bigger))) != NULL) {
        memcpy(bigger, old, given_up->comm_count * sizeof(*bigger));
        ibshift_given_up_free(given_up);
        given_up->failed = bigger;
        given_up->comm_room = room;
    } else {
        memmove(old, old + 1, --given_up->comm_count * sizeof(*old));
    }
}

void ibshift_given_up_add_comm(struct ibshift_given_up *given_up, uint32_t comm,
                               const struct ibshift_net_cause *with,
                               const struct ibshift_net_cause *root)
{
    given_up->has_failed = true;
    if (ibshift_given_up_comm(given_up, comm) != NULL) {
        return;
    }
    if (given_up->comm_count == given_up->comm_room) {
        make_room(given_up);
    }
    given_up->failed[given_up->comm_count++] = (struct ibshift_given_up_comm){
        .comm = ibshift_net_comm(comm), .with = *with, .root = *root};
}

void ibshift_given_up_open(struct ibshift_net *net, struct ibshift_given_up *given_up)
{
    net->given_up = given_up;
    net->given_up_count = &given_up->comm_count;
}

bool ibshift_net_has_failed(const struct ibshift_net *net)
{
    return net->given_up != NULL && net->given_up->has_failed;
}

int ibshift_net_root(const struct ibshift_net *net, uint32_t comm, int status)
{
    const struct ibshift_given_up_comm *known =
        net->given_up != NULL ? ibshift_given_up_comm(net->given_up, comm) : NULL;

    return known != NULL ? known->root.status : status;
}

void ibshift_net_abort(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    static const struct ibshift_net_cause no_cause;
    const struct ibshift_net_key key = {.comm = comm, .seq = seq};
    const struct ibshift_given_up_comm *known =
        net->given_up != NULL ? ibshift_given_up_comm(net->given_up, comm) : NULL;

    net = ibshift_net_part(net, peer);
    if (net->ops->abort != NULL) {
        net->ops->abort(net, peer, &key, known != NULL ? &known->root : &no_cause);
    }
}

bool ibshift_given_up_unlike(struct ibshift_net *net, uint32_t peer,
                             const struct ibshift_net_key *theirs)
{
    const struct ibshift_net_cause why = {.peer = peer, .status = -EBADMSG};
    const struct ibshift_net_comms *comms = &net->given_up->comms;
    uint32_t comm = ibshift_net_comm(theirs->comm);
    struct ibshift_ledger *ledger =
        comms->ledger != NULL ? comms->ledger(comms->context, comm) : NULL;
    struct ibshift_net_key ours = *theirs;

    if (ledger == NULL || !ibshift_ledger_find(ledger, theirs->seq, &ours.comm) ||
        ours.comm == theirs->comm || ibshift_given_up_comm(net->given_up, comm) != NULL) {
        return false;
    }
    if (ledger->unlike.ours == ledger->unlike.theirs) {
        ledger->unlike = (struct ibshift_unlike){peer, theirs->seq, ours.comm, theirs->comm};
    }
    ibshift_given_up_add_comm(net->given_up, comm, &why, &why);
    net->ops->abort(net, peer, &ours, &why);
    return true;
}

bool ibshift_given_up_is_over(struct ibshift_net *net, uint32_t peer,
                              const struct ibshift_net_key *theirs)
{
    return ibshift_given_up_unlike(net, peer, theirs) ||
           ibshift_given_up_here(net->given_up, theirs) ||
           ibshift_given_up_by(net->given_up, peer, theirs);
}

bool ibshift_given_up_why(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why)
{
    const struct ibshift_given_up_comm *known = ibshift_given_up_comm(net->given_up, comm);

    if (known == NULL || known->is_gone) {
        return false;
    }
    *why = known->with;
    return true;
}

void ibshift_given_up_enter(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_given_up *given_up = net->given_up;
    struct ibshift_given_up_comm *known = ibshift_given_up_comm(given_up, comm);

    if (known != NULL) {
        *known = given_up->failed[--given_up->comm_count];
    }
    for (uint32_t i = 0; i < IBSHIFT_ASKED_AFTER; i++) {
        if (given_up->asked[i].comm == comm) {
            given_up->asked[i].last = 0;
        }
    }
}

bool ibshift_given_up_forget(struct ibshift_given_up *given_up, uint32_t comm)
{
    struct ibshift_given_up_comm *known = ibshift_given_up_comm(given_up, comm);

    if (known != NULL) {
        known->is_gone = true;
    }
    given_up->here_count = remove_all(given_up->here, remembered(given_up), comm, NULL);
    given_up->peer_count = remove_all(given_up->by_peers, remembered_by(given_up), comm, NULL);
    return given_up->has_remains;
}

static bool is_asked_in_vain(struct ibshift_given_up *given_up, uint32_t comm, uint64_t now)
{
    uint32_t i = 0;

    while (i < IBSHIFT_ASKED_AFTER &&
           (given_up->asked[i].comm != comm || now - given_up->asked[i].last > longest_pause)) {
        i++;
    }
    if (i == IBSHIFT_ASKED_AFTER) {
        i = given_up->asks++ % IBSHIFT_ASKED_AFTER;
        given_up->asked[i].comm = comm;
        given_up->asked[i].first = now;
    }
    given_up->asked[i].last = now;
    return now - given_up->asked[i].first > in_vain;
}

/* A communicator that is here, and was not given up: NULL, or what one of its members died of. */
static const struct ibshift_given_up_comm *find_dead_member(struct ibshift_given_up *given_up,
                                                            uint32_t comm)
{
    const struct ibshift_net_comms *comms = &given_up->comms;

    for (uint32_t i = 0; i < given_up->comm_count; i++) {
        struct ibshift_net_cause root = given_up->failed[i].root;

        if (root.status == -ETIMEDOUT && comms->is_here(comms->context, comm, root.peer)) {
            ibshift_given_up_add_comm(given_up, comm, &root, &root);
            return ibshift_given_up_comm(given_up, comm);
        }
    }
    return NULL;
}

static const struct ibshift_given_up_comm *answer(struct ibshift_given_up *given_up, uint32_t comm,
                                                  uint64_t now)
{
    const struct ibshift_net_comms *comms = &given_up->comms;
    const struct ibshift_given_up_comm *known = ibshift_given_up_comm(given_up, comm);

    if ((known != NULL && !known->is_gone) || given_up->comm_count == 0) {
        return known;
    }
    if (comms->is_here == NULL) {
        return NULL;
    }
    if (comms->is_here(comms->context, comm, IBSHIFT_ANY_MEMBER)) {
        return find_dead_member(given_up, comm);
    }
    known = known != NULL ? known : &given_up->failed[given_up->comm_count - 1];
    return is_asked_in_vain(given_up, comm, now) ? known : NULL;
}

void ibshift_given_up_asked(struct ibshift_net *net, uint32_t peer,
                            const struct ibshift_net_key *theirs)
{
    const struct ibshift_given_up_comm *known;

    if (ibshift_given_up_unlike(net, peer, theirs)) {
        return; /* it has been told */
    }
    known = answer(net->given_up, ibshift_net_comm(theirs->comm), ibshift_net_now(net));
    if (known != NULL) {
        net->ops->abort(net, peer, theirs, &known->root);
    }
}

bool ibshift_given_up_has_ended(const struct ibshift_net *net, const struct ibshift_net_key *theirs)
{
    const struct ibshift_net_comms *comms = &net->given_up->comms;

    return comms->has_ended != NULL && ibshift_given_up_comm(net->given_up, theirs->comm) == NULL &&
           comms->has_ended(comms->context, ibshift_net_comm(theirs->comm), theirs->seq);
}
