/* What pacing asks of the net: which grants are here, and who leaves what aside. */
#include "net/verbs/private.h"

/* Also true where send() would fail at once: nobody waits for a grant that cannot come. */
bool ibshift_nv_is_granted(struct ibshift_net *net, uint32_t peer,
                           const struct ibshift_net_key *key, uint64_t *note)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    const struct ibshift_connection *c = ibshift_nv_peer(nv, peer);
    const struct ibshift_note *grant;

    *note = 0;
    if (c == NULL || c->status != 0 || ibshift_given_up_by(&nv->given_up, peer, key)) {
        return true;
    }
    grant = c->out.grants > 0 ? (const struct ibshift_note *)ibshift_match_find(&nv->tx, peer, key)
                              : NULL;
    if (grant == NULL || grant->kind != IBSHIFT_NOTE_GRANT) {
        return false;
    }
    *note = grant->to.note;
    return true;
}

void ibshift_nv_leave(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer(nv, peer);

    if (c != NULL && c->state == IBSHIFT_CONNECTION_READY) {
        ibshift_nv_control(nv, c, key, IBSHIFT_WIRE_LEAVE, NULL);
    }
}

void ibshift_nv_leave_came(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                           const struct ibshift_net_key *key)
{
    const struct ibshift_note *recv =
        (const struct ibshift_note *)ibshift_match_find(&nv->rx, c->peer, key);

    if (recv != NULL && recv->kind == IBSHIFT_NOTE_RECV) {
        ibshift_nv_event(nv, recv->cookie, c->peer, IBSHIFT_NET_LEFT);
    }
}
