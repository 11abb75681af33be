/* Collectives that fail: here, or at a peer. */
#include "net/node/private.h"

#include <errno.h>

static void cancel_recv(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                        struct ibshift_node_note *note)
{
    if (note->is_granted && !ibshift_nn_untell_grant(nn, peer, &note->match.key)) {
        ibshift_nn_tell(nn, peer, note->is_direct ? IBSHIFT_NODE_REVOKE : IBSHIFT_NODE_UNGRANT,
                        &note->match.key, 0, 0);
        if (note->is_direct) {
            note->is_revoking = true;         /* the sender may be writing: its word ends it */
            if (note->list == &peer->ready) { /* being fetched: no more of it */
                ibshift_nn_note_move(&peer->resting, note);
            }
            return;
        }
    }
    ibshift_nn_note_end(nn, note, -ECANCELED);
}

static void cancel_list(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                        struct ibshift_node_list *list, uint32_t comm, uint32_t seq)
{
    struct ibshift_node_note *next;

    for (struct ibshift_node_note *note = list->first; note != NULL; note = next) {
        next = note->next;
        if (note->match.key.comm != comm || note->match.key.seq != seq) {
            continue;
        }
        switch (note->kind) {
        case IBSHIFT_NODE_SEND:
            ibshift_nn_note_end(nn, note, -ECANCELED);
            break;
        case IBSHIFT_NODE_RECV:
            cancel_recv(nn, peer, note);
            break;
        case IBSHIFT_NODE_HELD:
            ibshift_nn_drop_held(nn, peer, note);
            break;
        case IBSHIFT_NODE_EARLY:
            ibshift_nn_note_free(nn, note);
            break;
        default: /* news goes on */
            break;
        }
    }
}

void ibshift_nn_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_node *nn = ibshift_node(net);

    ibshift_given_up_add_here(&nn->given_up, comm, seq);
    for (uint32_t i = 0; i < nn->met_count; i++) {
        struct ibshift_node_peer *peer = nn->peers[nn->met[i]];

        /* resting first: taking a grant back changes the list of those that are ready */
        cancel_list(nn, peer, &peer->resting, comm, seq);
        cancel_list(nn, peer, &peer->waiting, comm, seq);
        cancel_list(nn, peer, &peer->ready, comm, seq);
    }
}

/* What a peer gave up because of another one began with that one. */
void ibshift_nn_give_up(struct ibshift_net *net, uint32_t comm, const struct ibshift_net_cause *why)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    const struct ibshift_node_peer *peer =
        why->status == -ECONNABORTED ? ibshift_nn_peer(nn, why->peer) : NULL;

    ibshift_given_up_add_comm(&nn->given_up, comm, why,
                              peer != NULL && peer->cause.status != 0 ? &peer->cause : why);
}

bool ibshift_nn_has_given_up(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why)
{
    const struct ibshift_given_up_comm *known =
        ibshift_given_up_comm(&ibshift_node(net)->given_up, comm);

    if (known == NULL || known->is_gone) {
        return false;
    }
    *why = known->with;
    return true;
}

void ibshift_nn_enter_comm(struct ibshift_net *net, uint32_t comm)
{
    ibshift_given_up_enter(&ibshift_node(net)->given_up, comm);
}

static void tell_abort(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                       const struct ibshift_net_key *key, const struct ibshift_net_cause *why)
{
    ibshift_nn_tell(nn, peer, IBSHIFT_NODE_ABORT, key, (uint64_t)(int64_t)why->status, why->peer);
}

void ibshift_nn_abort(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    static const struct ibshift_net_cause no_cause;
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *to = ibshift_nn_peer(nn, peer);
    const struct ibshift_given_up_comm *known = ibshift_given_up_comm(&nn->given_up, comm);
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (to != NULL && to->status == 0) {
        tell_abort(nn, to, &key, known != NULL ? &known->root : &no_cause);
    }
}

void ibshift_nn_ask_after(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_node *nn = ibshift_node(net);
    struct ibshift_node_peer *to = ibshift_nn_peer(nn, peer);
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (to != NULL && to->status == 0 && to->ready.first == NULL) {
        ibshift_nn_tell(nn, to, IBSHIFT_NODE_ASK_AFTER, &key, 0, 0);
    }
}

void ibshift_nn_asked_after(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                            const struct ibshift_net_key *key)
{
    const struct ibshift_net_cause *why =
        ibshift_given_up_answer(&nn->given_up, key->comm, ibshift_net_now(&nn->net),
                                nn->options.has_comm, nn->options.context);

    if (why != NULL) {
        tell_abort(nn, peer, key, why);
    }
}

/*
 * The peer has cancelled its own messages before it said so, in the same box, so nothing of them
 * follows: also what was granted to it is ours again.
 */
static void end_list(struct ibshift_net_node *nn, struct ibshift_node_list *list,
                     const struct ibshift_net_key *key)
{
    struct ibshift_node_note *next;

    for (struct ibshift_node_note *note = list->first; note != NULL; note = next) {
        next = note->next;
        if (note->match.key.comm == key->comm && note->match.key.seq == key->seq &&
            (note->kind == IBSHIFT_NODE_SEND || note->kind == IBSHIFT_NODE_RECV)) {
            ibshift_nn_note_end(nn, note, note->is_revoking ? -ECANCELED : -ECONNABORTED);
        }
    }
}

void ibshift_nn_abort_came(struct ibshift_net_node *nn, struct ibshift_node_peer *peer,
                           const struct ibshift_node_cell *cell)
{
    const struct ibshift_net_key *key = &cell->key;

    peer->cause = (struct ibshift_net_cause){.peer = (uint32_t)cell->grant.address,
                                             .status = (int32_t)(int64_t)cell->grant.length};
    end_list(nn, &peer->resting, key);
    end_list(nn, &peer->waiting, key);
    end_list(nn, &peer->ready, key);
    if (!ibshift_given_up_here(&nn->given_up, key) &&
        !ibshift_given_up_by(&nn->given_up, peer->number, key) &&
        !ibshift_given_up_add_by(&nn->given_up, peer->number, key)) {
        ibshift_nn_break(nn, peer, -ECONNABORTED,
                         "it gave up more collectives than can be remembered");
    }
}

static void forget_list(struct ibshift_net_node *nn, struct ibshift_node_peer *peer, uint32_t comm)
{
    struct ibshift_node_note *next;

    for (struct ibshift_node_note *note = peer->resting.first; note != NULL; note = next) {
        next = note->next;
        if (note->match.key.comm == comm && note->kind == IBSHIFT_NODE_HELD) {
            ibshift_nn_drop_held(nn, peer, note);
        } else if (note->match.key.comm == comm && note->kind == IBSHIFT_NODE_EARLY) {
            ibshift_nn_note_free(nn, note);
        }
    }
}

void ibshift_nn_forget(struct ibshift_net *net, uint32_t comm)
{
    struct ibshift_net_node *nn = ibshift_node(net);

    if (!ibshift_given_up_forget(&nn->given_up, comm)) {
        return; /* nothing ever failed: all messages have met */
    }
    for (uint32_t i = 0; i < nn->met_count; i++) {
        forget_list(nn, nn->peers[nn->met[i]], comm);
    }
}
