/* Giving up: cancel() and abort() of net.h. */
#include "sim/net_private.h"

#include <errno.h>
#include <stdlib.h>

static bool is_of(const struct sim_message *m, uint32_t comm, uint32_t seq)
{
    return m->flags != 0 && m->key.comm == comm && m->key.seq == seq;
}

/* Ends this side of a message, if it was posted and nothing will end it by itself. */
static void end_side(struct sim_net *n, uint32_t message, int side, int status)
{
    uint32_t flags = n->messages[message].flags;
    uint32_t posted = side == SIM_SENDER ? SIM_HAS_SEND : SIM_HAS_RECV;
    uint32_t ended = side == SIM_SENDER ? SIM_SEND_ENDED : SIM_RECV_ENDED;

    if ((flags & posted) && !(flags & (ended | SIM_STARTED))) {
        sim_message_end(n, message, side, status);
    }
}

void sim_net_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct sim_end *end = (struct sim_end *)net;
    struct sim_net *n = end->world;

    for (uint32_t i = 0; i < n->used; i++) {
        if (!is_of(&n->messages[i], comm, seq)) {
            continue;
        }
        if (n->messages[i].to == end->self) {
            end_side(n, i, SIM_RECEIVER, -ECANCELED);
        } else if (n->messages[i].from == end->self) {
            end_side(n, i, SIM_SENDER, -ECANCELED);
        }
    }
}

static void end_peers_side(struct sim_net *n, uint32_t message, uint32_t self, uint32_t peer)
{
    const struct sim_message *m = &n->messages[message];

    if (m->from == self && m->to == peer) {
        end_side(n, message, SIM_RECEIVER, -ECONNABORTED);
    } else if (m->from == peer && m->to == self) {
        end_side(n, message, SIM_SENDER, -ECONNABORTED);
    }
}

/* Remembered without bound: a simulation that fails is over soon. */
void sim_net_abort(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct sim_end *end = (struct sim_end *)net;
    struct sim_net *n = end->world;
    struct sim_given_up *grown =
        realloc(n->given_up, (n->given_up_count + 1) * sizeof(*n->given_up));

    if (grown == NULL) {
        n->queue->is_broken = true;
        return;
    }
    n->given_up = grown;
    n->given_up[n->given_up_count++] =
        (struct sim_given_up){.by = end->self, .peer = peer, .comm = comm, .seq = seq};
    for (uint32_t i = 0; i < n->used; i++) {
        if (is_of(&n->messages[i], comm, seq)) {
            end_peers_side(n, i, end->self, peer);
        }
    }
}

int sim_net_refusal(const struct sim_net *n, uint32_t rank, uint32_t peer,
                    const struct ibshift_net_key *key)
{
    if (peer >= n->ranks) {
        return -EINVAL;
    }
    for (size_t i = 0; i < n->given_up_count; i++) {
        const struct sim_given_up *g = &n->given_up[i];

        if (g->by == peer && g->peer == rank && g->comm == key->comm && g->seq == key->seq) {
            return -ECONNABORTED;
        }
    }
    return 0;
}
