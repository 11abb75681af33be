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

static struct ibshift_net *net_of(struct by_peer *both, uint32_t peer)
{
    if (peer >= both->peers) {
        return both->far;
    }
    if (both->way[peer] == UNKNOWN) {
        both->way[peer] = both->is_near(both->context, peer) ? NEAR : FAR;
    }
    return both->way[peer] == NEAR ? both->near : both->far;
}

static int send(struct ibshift_net *net, const struct ibshift_net_message *message)
{
    return ibshift_net_send(net_of(by_peer(net), message->peer), message);
}

static int recv(struct ibshift_net *net, const struct ibshift_net_message *message)
{
    return ibshift_net_recv(net_of(by_peer(net), message->peer), message);
}

static struct ibshift_net_channel *channel(struct ibshift_net *net, uint32_t peer)
{
    struct ibshift_net *one = net_of(by_peer(net), peer);

    return one->ops->channel(one, peer);
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

static void abort_collective(struct ibshift_net *net, uint32_t peer,
                             const struct ibshift_net_key *key, const struct ibshift_net_cause *why)
{
    struct ibshift_net *one = net_of(by_peer(net), peer);

    one->ops->abort(one, peer, key, why);
}

static void give_up(struct ibshift_net *net, uint32_t comm, const struct ibshift_net_cause *why)
{
    ibshift_net_give_up(net_of(by_peer(net), why->peer), comm, why);
}

static void ask(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq)
{
    ibshift_net_ask(net_of(by_peer(net), peer), peer, comm, seq);
}

static void forget(struct ibshift_net *net, uint32_t comm)
{
    ibshift_net_forget(by_peer(net)->near, comm);
    ibshift_net_forget(by_peer(net)->far, comm);
}

static void probe(struct ibshift_net *net, uint32_t peer)
{
    ibshift_net_probe(net_of(by_peer(net), peer), peer);
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

static bool granted(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                    uint64_t *hint)
{
    return ibshift_net_granted(net_of(by_peer(net), peer), peer, key, hint);
}

static void leave(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key)
{
    ibshift_net_leave(net_of(by_peer(net), peer), peer, key);
}

static void describe(struct ibshift_net *net, uint32_t peer, char *text, size_t size)
{
    ibshift_net_describe(net_of(by_peer(net), peer), peer, text, size);
}

static uint64_t now(struct ibshift_net *net)
{
    return ibshift_net_now(by_peer(net)->far);
}

static void destroy(struct ibshift_net *net)
{
    ibshift_net_destroy(by_peer(net)->near);
    ibshift_net_destroy(by_peer(net)->far);
    free(net);
}

static const struct ibshift_net_ops ops = {
    .send = send,
    .recv = recv,
    .channel = channel,
    .poll = poll,
    .cancel = cancel,
    .abort = abort_collective,
    .give_up = give_up,
    .has_given_up = ibshift_given_up_why,
    .enter = ibshift_given_up_enter,
    .ask = ask,
    .forget = forget,
    .probe = probe,
    .mem_register = mem_register,
    .mem_release = mem_release,
    .granted = granted,
    .leave = leave,
    .describe = describe,
    .now = now,
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
    both->net = (struct ibshift_net){.ops = &ops, .max_eager = far->max_eager};
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
