/* What a rank's nets must have back when all of its collectives are over: stocks, grants, messages. */
#include "left.h"

#include "net/cast/impl.h"
#include "net/node/private.h"
#include "scheduler.h"

static struct {
    struct ibshift_net_verbs *verbs;
    struct ibshift_net_node *node;
    uint32_t slots, quota, grants; /* at first */
} l;

void left_watch(struct ibshift_net *verbs, struct ibshift_net *node)
{
    if (verbs != NULL) {
        l.verbs = ibshift_nv(verbs);
        replay_card(replay_self())->net = l.verbs;
        l.slots = l.verbs->slot_stock;
        l.quota = l.verbs->quota_stock;
        l.grants = l.verbs->free_grant_count;
    }
    if (node != NULL) {
        l.node = ibshift_node(node);
    }
}

/* Whatever has failed: what was given to peers, and what was not, are together what there was. */
static void check_stocks(const struct ibshift_net_verbs *nv)
{
    uint32_t slots = nv->slot_stock, quota = nv->quota_stock;

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        slots += nv->connections[i]->in.slots - nv->connections[i]->in.slots_arrived;
        quota += nv->connections[i]->in.quota_window;
    }
    if (slots != l.slots || quota != l.quota) {
        replay_fail("rank %d: of %u slots and %u quota in stock %u and %u are left", replay_self(),
                    l.slots, l.quota, slots, quota);
    }
}

static void check_connections(const struct ibshift_net_verbs *nv)
{
    uint32_t standing = 0; /* grants that a late write may still use */

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        const struct ibshift_connection *c = nv->connections[i];

        const struct ibshift_note *note =
            c->waiting.first != NULL ? c->waiting.first : c->resting.first;

        for (const struct ibshift_note *n = c->standing.first; n != NULL; n = n->next) {
            standing += n->is_granted && ibshift_net_has_failed(&nv->net);
        }
        if (note != NULL || c->in.held != 0) {
            replay_fail(
                "rank %d: messages with rank %u over the adapter are left, %u held, the first of "
                "kind %d, key %x %u %x",
                replay_self(), c->peer, c->in.held, note == NULL ? -1 : note->kind,
                note == NULL ? 0 : note->match.key.comm, note == NULL ? 0 : note->match.key.seq,
                note == NULL ? 0 : note->match.key.tag);
        }
    }
    if (nv->casts != NULL && nv->casts->next != NULL) { /* the world's goes with the net */
        replay_fail("rank %d: a multicast group is left", replay_self());
    }
    if (nv->free_grant_count + standing != l.grants) {
        replay_fail("rank %d: %u grants are left, %u of them stand", replay_self(),
                    l.grants - nv->free_grant_count, standing);
    }
}

/* What the peer has sent has come, it knows what it was told, and of what it would have to know nothing was kept from it. */
static void compare_ends(const struct ibshift_net_verbs *nv, const struct ibshift_connection *c)
{
    const struct ibshift_net_verbs *theirs = replay_card((int)c->peer)->net;
    const struct ibshift_connection *o =
        theirs != NULL ? ibshift_nv_peer_known(theirs, nv->options.self) : NULL;
    const struct ibshift_word *word = o != NULL ? &theirs->words[o->number] : NULL;

    if (o == NULL || o->state != IBSHIFT_CONNECTION_READY || c->state != o->state) {
        return;
    }
    if (o->out.slots_used != c->in.slots_arrived || o->out.quota_used != c->in.quota_arrived ||
        o->out.ring_used != c->in.ring_head) {
        replay_fail(
            "rank %d has sent %u slots, %u quota, %u lines to rank %d, where %u, %u, %u came",
            c->peer, o->out.slots_used, o->out.quota_used, o->out.ring_used, replay_self(),
            c->in.slots_arrived, c->in.quota_arrived, c->in.ring_head);
    }
    if ((o->out.slots != c->in.slots_told && word->slots != c->in.slots_told) ||
        (o->out.quota != c->in.quota_told && word->quota != c->in.quota_told) ||
        (c->must_tell && !c->is_word_away) || /* else it follows that one */
        ibshift_limit_is_news(c->in.slots, c->in.slots_told, c->in.slots_arrived,
                              c->in.slots_window) ||
        ibshift_limit_is_news(c->in.quota, c->in.quota_told, c->in.quota_arrived,
                              c->in.quota_window)) {
        replay_fail(
            "rank %d: of %u slots and %u quota %u and %u were told, rank %d knows %u or %u, "
            "%u or %u",
            replay_self(), c->in.slots, c->in.quota, c->in.slots_told, c->in.quota_told, c->peer,
            o->out.slots, word->slots, o->out.quota, word->quota);
    }
}

void left_compare(void)
{
    for (uint32_t i = 0; l.verbs != NULL && i < l.verbs->connection_count; i++) {
        compare_ends(l.verbs, l.verbs->connections[i]);
    }
}

static void check_node(const struct ibshift_net_node *nn)
{
    for (uint32_t i = 0; i < nn->met_count; i++) {
        const struct ibshift_node_peer *peer = nn->peers[nn->met[i]];

        if (peer->waiting.first != NULL || peer->resting.first != NULL || peer->longs != 0 ||
            peer->in_quota != peer->in_returned) {
            replay_fail("rank %d: messages with rank %u in shared memory are left", replay_self(),
                        peer->number);
        }
    }
}

bool left_is_any(void)
{
    const struct ibshift_cast *cast = l.verbs != NULL ? l.verbs->casts : NULL;

    for (; cast != NULL; cast = cast->next) {
        if (cast->is_closing) {
            return true;
        }
    }
    for (uint32_t i = 0; l.verbs != NULL && i < l.verbs->connection_count; i++) {
        const struct ibshift_connection *c = l.verbs->connections[i];

        if (c->ready.first != NULL || c->waiting.first != NULL || c->resting.first != NULL) {
            return true;
        }
    }
    return false;
}

void left_check(bool has_failed)
{
    if (l.verbs != NULL) {
        check_stocks(l.verbs);
    }
    if (l.verbs != NULL && !has_failed) {
        check_connections(l.verbs);
    }
    if (l.node != NULL && !has_failed) {
        check_node(l.node);
    }
}
