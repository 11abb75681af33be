/* The endpoints of the simulated net: net.h as the engines call it. */
#include "sim/net.h"

#include "fabric/graph/random.h"

/* cancel() and abort() of net.h: a collective that is simulated gives up for want of memory, or by an
 * error of ours. */
static _Noreturn void give_up(void)
{
    fputs("ibshift sim: the executor has given a collective up\n", stderr);
    exit(1);
}

static void net_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    (void)net;
    (void)comm;
    (void)seq;
    give_up();
}

static void net_abort(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                      const struct ibshift_net_cause *why)
{
    (void)net;
    (void)peer;
    (void)key;
    (void)why;
    give_up();
}

/* Fills in this side of the message that the post belongs to, and returns its number. */
static uint32_t post(struct sim_end *end, const struct ibshift_net_message *posted, int side)
{
    struct sim_net *n = end->world;
    uint32_t peer = end->job.first + posted->peer;
    uint32_t from = side == SIM_SENDER ? end->self : peer;
    uint32_t to = side == SIM_SENDER ? peer : end->self;
    uint32_t message = sim_message_make(n, from, to, &posted->key);
    struct sim_message *m = &n->messages[message];

    assert(posted->peer < end->job.ranks);
    m->flags |= SIM_POSTED << side;
    m->length[side] = posted->length;
    m->buffer[side] = posted->buffer;
    m->cookie[side] = posted->cookie;
    if (side == SIM_SENDER) {
        m->piece = sim_is_short(n, from, posted->length) ? 0 : posted->piece;
        m->beside = posted->beside;
        n->ends[from].in_pieces += m->piece > 0;
    }
    end->at += n->options.overhead;
    return message;
}

static int net_send(struct ibshift_net *net, const struct ibshift_net_message *posted)
{
    struct sim_net *n = ((struct sim_end *)net)->world;
    uint32_t i = post((struct sim_end *)net, posted, SIM_SENDER);

    if (sim_message_may_start(n, &n->messages[i])) {
        sim_message_start(n, i);
    }
    return IBSHIFT_NET_PENDING;
}

static int net_recv(struct ibshift_net *net, const struct ibshift_net_message *posted)
{
    struct sim_net *n = ((struct sim_end *)net)->world;
    uint32_t i = post((struct sim_end *)net, posted, SIM_RECEIVER);
    struct sim_message *m = &n->messages[i];

    if (m->flags & SIM_ARRIVED) { /* it was held: it is copied, and over for the receiver */
        sim_message_deliver(n, m);
        m->flags |= SIM_ENDED << SIM_RECEIVER;
        sim_message_forget(n, i);
        return IBSHIFT_NET_DONE;
    }
    if (!sim_is_short(n, m->to, posted->length)) {
        sim_message_grant(n, i);
    }
    return IBSHIFT_NET_PENDING;
}

static int net_poll(struct ibshift_net *net, struct ibshift_net_event *events, int max)
{
    struct sim_end *end = (struct sim_end *)net;
    struct sim_net *n = end->world;
    int count = 0;

    while (end->count > 0 && count < max) {
        struct sim_notice notice = end->notices[end->oldest];

        end->oldest = (end->oldest + 1) % end->room;
        end->count--;
        end->at += n->options.overhead;
        if (notice.granted != SIM_NO_MESSAGE) {
            if (sim_message_may_start(n, &n->messages[notice.granted])) {
                sim_message_start(n, notice.granted);
            }
        } else {
            events[count++] =
                (struct ibshift_net_event){.cookie = notice.cookie, .peer = notice.peer};
        }
    }
    return count;
}

static void net_describe(struct ibshift_net *net, uint32_t peer, char *text, size_t size)
{
    struct sim_end *end = (struct sim_end *)net;
    const struct sim_net *n = end->world;

    snprintf(text, size, "simulated rank %u on %s", peer,
             ibshift_host_name(n->graph, n->ends[end->job.first + peer].host));
}

static uint64_t net_now(struct ibshift_net *net)
{
    const struct sim_end *end = (struct sim_end *)net;

    return end->at / 1000;
}

static void net_destroy(struct ibshift_net *net)
{
    (void)net; /* the world owns it */
}

static const struct ibshift_net_ops ops = {
    .send = net_send,
    .recv = net_recv,
    .poll = net_poll,
    .cancel = net_cancel,
    .abort = net_abort,
    .describe = net_describe,
    .now = net_now,
    .destroy = net_destroy,
};

struct sim_net *sim_net_create(const struct ibshift_fabric *graph,
                               const struct sim_net_options *options, const uint32_t *host_of,
                               uint32_t ranks, struct sim_queue *queue)
{
    struct sim_net *n = sim_zeroed(1, sizeof(*n));

    *n = (struct sim_net){.graph = graph,
                          .options = *options,
                          .queue = queue,
                          .ranks = ranks,
                          .unused = SIM_NO_MESSAGE,
                          .random = options->seed};
    n->ends = sim_zeroed(ranks, sizeof(*n->ends));
    n->paused = sim_zeroed(graph->host_count, sizeof(*n->paused));
    n->memory = sim_zeroed(graph->host_count, sizeof(*n->memory));
    for (uint32_t r = 0; r < ranks; r++) {
        n->ends[r] = (struct sim_end){
            .net = {.ops = &ops, .max_eager = options->max_eager},
            .world = n,
            .self = r,
            .host = host_of[r],
            .node = options->node_of != NULL ? options->node_of[host_of[r]] : host_of[r],
            .job = {.ranks = ranks},
            .wake = SIM_NEVER};
    }
    return n;
}

void sim_net_set_job(struct sim_net *n, const struct sim_net_job *job)
{
    for (uint32_t r = job->first; r < job->first + job->ranks; r++) {
        n->ends[r].job = *job;
        n->ends[r].net.max_eager = job->max_eager;
    }
}

void sim_net_free(struct sim_net *n)
{
    if (n == NULL) {
        return;
    }
    for (uint32_t r = 0; r < n->ranks; r++) {
        free(n->ends[r].notices);
    }
    free(n->ends);
    free(n->paused);
    free(n->memory);
    for (uint32_t i = 0; i < n->used; i++) {
        free(n->messages[i].flags != 0 ? n->messages[i].held : NULL);
    }
    free(n->messages);
    free(n->heads);
    free(n);
}

void sim_net_begin(struct sim_net *n, struct sim_fabric *fabric, sim_net_turn turn, void *context)
{
    n->fabric = fabric;
    n->turn = turn;
    n->turn_context = context;
    for (uint32_t r = 0; r < n->ranks; r++) {
        double skew = ibshift_random_share(&n->random) * (double)n->options.skew;

        n->ends[r].at = n->queue->now + n->ends[r].job.start + (uint64_t)skew;
        sim_end_wake(n, r, n->ends[r].at);
    }
}
