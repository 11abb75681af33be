#include "net/by_peer.h"

#include <stdlib.h>

#include "net/given_up.h"

/* Looking at an adapter costs more than looking at memory: while the near net has news, less of it.
 */
enum { NEAR_TURNS = 4 };

enum { UNKNOWN, NEAR, FAR };

struct by_peer {
    struct ibshift_net net;
    struct ibshift_net *near, *far;
    bool (*is_near)(void *context, uint32_t peer);
    void *context;
    uint32_t peers;
    uint32_t turns;        /* of the near net since the far one had its own */
    _Atomic uint8_t way[]; /* by peer; describe() may read while another call runs */
};

static struct by_peer *by_peer(struct ibshift_net *net)
{
    return (struct by_peer *)net;
}

static struct ibshift_net *part(struct ibshift_net *net, uint32_t peer)
{
    struct by_peer *both = by_peer(net);

    if (peer >= both->peers) {
        return both->far;
    }
    if (both->way[peer] == UNKNOWN) {
        both->way[peer] = both->is_near(both->context, peer) ? NEAR : FAR;
    }
    return both->way[peer] == NEAR ? both->near : both->far;
}

/* The near net may try less after it has measured what a ring takes. */
static void limit_tries(struct by_peer *both)
{
    both->net.max_tried =
        both->near->max_tried < both->far->max_tried ? both->near->max_tried : both->far->max_tried;
}

static int poll(struct ibshift_net *net, struct ibshift_net_event *events, int max)
{
    struct by_peer *both = by_peer(net);
    int count = ibshift_net_poll(both->near, events, max);

    if (count > 0 && ++both->turns < NEAR_TURNS) {
        return count;
    }
    both->turns = 0;
    limit_tries(both);
    return count < max ? count + ibshift_net_poll(both->far, events + count, max - count) : count;
}

static void cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    ibshift_net_cancel(by_peer(net)->near, comm, seq);
    ibshift_net_cancel(by_peer(net)->far, comm, seq);
}

static void forget(struct ibshift_net *net, uint32_t comm)
{
    ibshift_net_forget(by_peer(net)->near, comm);
    ibshift_net_forget(by_peer(net)->far, comm);
}

static void revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing, const uint32_t *seq)
{
    ibshift_net_revoke(by_peer(net)->far, comm, standing, seq);
}

static int mem_register(struct ibshift_net *net, void *base, size_t length,
                        struct ibshift_net_mem **mem)
{
    *mem = ibshift_net_mem_register(by_peer(net)->far, base, length);
    return 0;
}

static void mem_release(struct ibshift_net *net, struct ibshift_net_mem *mem)
{
    ibshift_net_mem_release(by_peer(net)->far, mem);
}

static void destroy(struct ibshift_net *net)
{
    ibshift_net_destroy(by_peer(net)->near);
    ibshift_net_destroy(by_peer(net)->far);
    free(net);
}

static const struct ibshift_net_ops ops = {
    .part = part,
    .poll = poll,
    .cancel = cancel,
    .has_given_up = ibshift_given_up_why,
    .enter = ibshift_given_up_enter,
    .forget = forget,
    .revoke = revoke,
    .mem_register = mem_register,
    .mem_release = mem_release,
    .destroy = destroy,
};

struct ibshift_net *ibshift_net_by_peer_create(struct ibshift_net *near, struct ibshift_net *far,
                                               uint32_t peers,
                                               bool (*is_near)(void *context, uint32_t peer),
                                               void *context)
{
    struct by_peer *both = calloc(1, sizeof(*both) + peers);

    if (both == NULL) {
        return NULL;
    }
    both->net =
        (struct ibshift_net){.ops = &ops, .max_eager = far->max_eager, .ungranted = far->ungranted};
    ibshift_given_up_open(near, far->given_up);
    ibshift_given_up_open(&both->net, far->given_up);
    both->near = near;
    both->far = far;
    both->is_near = is_near;
    both->context = context;
    both->peers = peers;
    limit_tries(both);
    return &both->net;
}
