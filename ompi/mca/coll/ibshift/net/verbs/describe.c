/* A peer in words. */
#include <stdio.h>
#include <string.h>

#include "net/verbs/gid.h"
#include "net/verbs/private.h"

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
