#include "net_loop_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a loop does for pacing: grants that are seen, early news, messages that are left. */

/* Under the lock. Nearly all of a long message has come: both its ends hear of it, if its receive is
 * there. */
static void come_early(struct endpoint *endpoint, struct message *send)
{
    struct ibshift_loop *loop = endpoint->loop;
    struct message *recv = ibshift_loop_find(loop, POSTED, send->from, send->to, &send->match.key);

    if (send->early == 0 || send->early_due > loop->now || recv == NULL || is_short(loop, send)) {
        return;
    }
    send->early = 0;
    ibshift_loop_message_news(loop, send, IBSHIFT_NET_EARLY);
    ibshift_loop_message_news(loop, recv, IBSHIFT_NET_EARLY);
}

static bool granted(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                    uint64_t *hint)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    struct ibshift_loop *loop = endpoint->loop;
    const struct message *recv = ibshift_loop_find(loop, POSTED, endpoint->self, peer, key);
    bool is_granted = recv != NULL && recv->due <= loop->now;
    bool is_lost = endpoint->is_dead || endpoint->failed[peer] != 0 ||
                   ibshift_given_up_by(&endpoint->given_up, peer, key);

    *hint = is_granted ? recv->hint : 0;
    return ibshift_loop_unlock(endpoint, is_granted || is_lost);
}

/* With a seed, some of these are lost. */
static void leave(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    struct ibshift_loop *loop = endpoint->loop;
    const struct message *recv = ibshift_loop_find(loop, POSTED, endpoint->self, peer, key);

    if (recv != NULL && (loop->options.seed == 0 || ibshift_loop_random(loop, 4) != 0)) {
        ibshift_loop_message_news(loop, recv, IBSHIFT_NET_LEFT);
    }
    ibshift_loop_unlock(endpoint, 0);
}

static struct message *message_create(struct ibshift_loop *loop, uint32_t from, uint32_t to,
                                      const struct ibshift_net_message *posted, size_t copied)
{
    struct message *message = malloc(sizeof(*message) + copied);

    if (message != NULL) {
        *message = (struct message){.from = from,
                                    .to = to,
                                    .match = {.key = posted->key},
                                    .length = posted->length,
                                    .buffer = posted->buffer,
                                    .cookie = posted->cookie,
                                    .hint = posted->hint,
                                    .early = posted->early};
        loop->messages++;
    }
    return message;
}

static void copy_bytes(void *to, const void *from, size_t length)
{
    if (length > 0) {
        memcpy(to, from, length);
    }
}

static void start(struct ibshift_loop *loop, struct message *message)
{
    message->place = ON_THE_WIRE;
    message->due = ibshift_loop_after_delay(loop);
    message->early_due = loop->now + ibshift_loop_random(loop, message->due - loop->now + 1);
    loop->endpoints[message->from].on_the_wire++;
    ibshift_loop_list_append(&loop->endpoints[message->to].arriving, message);
}

static int deliver(const struct message *send, size_t length, void *buffer)
{
    if (send->length != length) {
        return -EMSGSIZE;
    }
    copy_bytes(buffer, send->has_copy ? send->copy : send->buffer, length);
    return 0;
}

/* An early message: held here as long as there is room, else it stays with its sender. */
static void park(struct ibshift_loop *loop, struct endpoint *endpoint, struct message *message)
{
    struct message *held = message;

    if (is_short(loop, message) && endpoint->held < loop->options.room) {
        if (!message->has_copy) {
            held = malloc(sizeof(*held) + message->length);
            if (held != NULL) {
                *held = *message;
                loop->messages++;
                copy_bytes(held->copy, message->buffer, message->length);
                ibshift_loop_message_end(loop, message, 0, ibshift_loop_after_delay(loop));
                held->has_copy = true;
            } else {
                held = message;
            }
        }
        held->is_held = held->has_copy;
        endpoint->held += held->is_held;
    }
    held->place = PARKED;
    ibshift_loop_put(loop, held);
}

static void arrive(struct ibshift_loop *loop, struct endpoint *endpoint, struct message *send)
{
    struct message *recv = ibshift_loop_find(loop, POSTED, send->from, send->to, &send->match.key);
    int status;

    loop->endpoints[send->from].on_the_wire--;
    if (recv == NULL && is_short(loop, send) &&
        ibshift_given_up_here(&endpoint->given_up, &send->match.key)) {
        ibshift_loop_message_end(loop, send, 0, loop->now);
        return;
    }
    if (recv == NULL) {
        park(loop, endpoint, send);
        return;
    }
    ibshift_match_remove(&recv->match);
    status = deliver(send, recv->length, recv->buffer);
    ibshift_loop_message_end(loop, recv, status, loop->now);
    ibshift_loop_message_end(loop, send, status, ibshift_loop_after_delay(loop));
}

static int refusal(const struct endpoint *endpoint, const struct ibshift_net_message *message)
{
    const struct ibshift_net_mem *mem = message->mem;

    if (message->peer >= endpoint->loop->options.peers) {
        return -EINVAL;
    }
    if (mem != NULL && ((char *)message->buffer < mem->base ||
                        (char *)message->buffer + message->length > mem->base + mem->length)) {
        return -EINVAL;
    }
    if (ibshift_given_up_by(&endpoint->given_up, message->peer, &message->key)) {
        return -ECONNABORTED;
    }
    return endpoint->is_dead ? -EIO : endpoint->failed[message->peer];
}

/* Without a seed every short send is over at once; with one, some are. */
static bool ends_at_once(struct ibshift_loop *loop, const struct ibshift_net_message *message)
{
    return message->length <= loop->options.max_eager &&
           (loop->options.seed == 0 || ibshift_loop_random(loop, 2) == 0);
}

static int send_locked(struct endpoint *endpoint, const struct ibshift_net_message *posted)
{
    struct ibshift_loop *loop = endpoint->loop;
    bool is_copied = ends_at_once(loop, posted);
    struct message *message =
        message_create(loop, endpoint->self, posted->peer, posted, is_copied ? posted->length : 0);

    if (message == NULL) {
        return -ENOMEM;
    }
    if (loop->endpoints[posted->peer].is_dead) {
        ibshift_loop_message_end(loop, message, -ETIMEDOUT, loop->now + loop->options.timeout);
        return IBSHIFT_NET_PENDING;
    }
    if (is_copied) {
        copy_bytes(message->copy, posted->buffer, posted->length);
        message->has_copy = true;
    }
    start(loop, message);
    return is_copied ? IBSHIFT_NET_DONE : IBSHIFT_NET_PENDING;
}

static int loop_send(struct ibshift_net *net, const struct ibshift_net_message *message)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    int rc = refusal(endpoint, message);

    if (rc != 0) {
        return ibshift_loop_unlock(endpoint, rc);
    }
    if (endpoint->on_the_wire >= endpoint->loop->options.depth) {
        return ibshift_loop_unlock(endpoint, -EAGAIN);
    }
    if (endpoint->sends_to_live == 0) {
        ibshift_loop_die(endpoint);
        return ibshift_loop_unlock(endpoint, -EIO);
    }
    endpoint->sends_to_live--;
    return ibshift_loop_unlock(endpoint, send_locked(endpoint, message));
}

static int take_held(struct endpoint *endpoint, struct message *send,
                     const struct ibshift_net_message *posted)
{
    int status = deliver(send, posted->length, posted->buffer);

    ibshift_match_remove(&send->match);
    endpoint->held--;
    ibshift_loop_message_free(endpoint->loop, send);
    return status == 0 ? IBSHIFT_NET_DONE : status;
}

static int recv_locked(struct endpoint *endpoint, const struct ibshift_net_message *posted)
{
    struct ibshift_loop *loop = endpoint->loop;
    struct message *waiting =
        ibshift_loop_find(loop, PARKED, posted->peer, endpoint->self, &posted->key);
    struct message *message;

    if (waiting != NULL && waiting->is_held) {
        return take_held(endpoint, waiting, posted);
    }
    message = message_create(loop, posted->peer, endpoint->self, posted, 0);
    if (message == NULL) {
        return -ENOMEM;
    }
    message->is_recv = true;
    if (loop->endpoints[posted->peer].is_dead && !is_short(loop, message)) { /* the grant fails */
        ibshift_loop_message_end(loop, message, -ETIMEDOUT, loop->now + loop->options.timeout);
        return IBSHIFT_NET_PENDING;
    }
    message->place = POSTED;
    message->due = ibshift_loop_after_delay(loop);
    if (waiting != NULL) {
        ibshift_match_remove(&waiting->match);
        start(loop, waiting);
    }
    ibshift_loop_put(loop, message);
    return IBSHIFT_NET_PENDING;
}

static int loop_recv(struct ibshift_net *net, const struct ibshift_net_message *message)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    int rc = refusal(endpoint, message);

    return ibshift_loop_unlock(endpoint, rc != 0 ? rc : recv_locked(endpoint, message));
}

static void arrive_due(struct endpoint *endpoint, int max)
{
    struct list *arriving = &endpoint->arriving;
    uint64_t now = endpoint->loop->now;

    for (struct message **link = &arriving->first; *link != NULL && max > 0;) {
        if ((*link)->due <= now) {
            arrive(endpoint->loop, endpoint, ibshift_loop_list_take(arriving, link));
            max--;
        } else {
            come_early(endpoint, *link);
            link = &(*link)->next;
        }
    }
}

/* With a seed, some are refused for no reason, so that whoever tries has to post. */
static bool is_in_the_mood(struct ibshift_loop *loop)
{
    return loop->options.seed == 0 || ibshift_loop_random(loop, 8) != 0;
}

static bool try_send(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                     const void *buffer, size_t length)
{
    struct loop_channel *to = (struct loop_channel *)channel;
    struct ibshift_net_message as_posted =
        ibshift_net_tried(to->peer, comm_seq, tag, buffer, length);
    const struct ibshift_net_message *posted = &as_posted;
    struct endpoint *endpoint = ibshift_loop_lock(&to->endpoint->net);
    struct ibshift_loop *loop = endpoint->loop;
    struct message *message = NULL;

    if (refusal(endpoint, posted) == 0 && endpoint->on_the_wire < loop->options.depth &&
        posted->length <= loop->options.max_eager && endpoint->sends_to_live > 0 &&
        !loop->endpoints[posted->peer].is_dead && is_in_the_mood(loop)) {
        message = message_create(loop, endpoint->self, posted->peer, posted, posted->length);
    }
    if (message != NULL) {
        endpoint->sends_to_live--;
        copy_bytes(message->copy, posted->buffer, posted->length);
        message->has_copy = true;
        start(loop, message);
    }
    return ibshift_loop_unlock(endpoint, message != NULL);
}

static bool try_recv(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                     void *buffer, size_t length)
{
    struct loop_channel *from = (struct loop_channel *)channel;
    struct ibshift_net_message as_posted =
        ibshift_net_tried(from->peer, comm_seq, tag, buffer, length);
    const struct ibshift_net_message *posted = &as_posted;
    struct endpoint *endpoint = ibshift_loop_lock(&from->endpoint->net);
    struct ibshift_loop *loop = endpoint->loop;
    struct message *held = NULL;

    if (refusal(endpoint, posted) == 0 && is_in_the_mood(loop)) {
        loop->now += loop->options.tick;
        arrive_due(endpoint, 1);
        held = ibshift_loop_find(loop, PARKED, posted->peer, endpoint->self, &posted->key);
    }
    if (held == NULL || !held->is_held || held->length != posted->length) {
        return ibshift_loop_unlock(endpoint, false);
    }
    return ibshift_loop_unlock(endpoint, take_held(endpoint, held, posted) == IBSHIFT_NET_DONE);
}

static struct ibshift_net_channel *loop_channel(struct ibshift_net *net, uint32_t peer)
{
    struct endpoint *endpoint = (struct endpoint *)net;
    struct loop_channel *channel = &endpoint->channels[peer];

    *channel =
        (struct loop_channel){.channel = {try_send, try_recv}, .endpoint = endpoint, .peer = peer};
    return &channel->channel;
}

static int loop_poll(struct ibshift_net *net, struct ibshift_net_event *events, int max)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    struct ibshift_loop *loop = endpoint->loop;
    struct list *ended = &endpoint->ended;
    int count = 0;

    loop->now += loop->options.tick;
    arrive_due(endpoint, max);
    for (struct message **link = &ended->first; *link != NULL && count < max;) {
        struct message *message = *link;

        if (message->due > loop->now) {
            link = &message->next;
            continue;
        }
        ibshift_loop_list_take(ended, link);
        events[count].cookie = message->cookie;
        events[count].peer = message->is_recv ? message->from : message->to;
        events[count].status = message->status;
        if (message->status == -ETIMEDOUT) {
            ibshift_loop_fail_peer(endpoint, events[count].peer, -ETIMEDOUT);
        }
        ibshift_loop_message_free(loop, message);
        count++;
    }
    return ibshift_loop_unlock(endpoint, count);
}

static void loop_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    ibshift_loop_drop(endpoint, comm, seq);
    ibshift_loop_unlock(endpoint, 0);
}

static void loop_abort(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                       const struct ibshift_net_cause *why)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    (void)why; /* asked for by nobody here */
    ibshift_loop_give_up(endpoint, peer, key->comm, key->seq);
    ibshift_loop_unlock(endpoint, 0);
}

static void loop_give_up(struct ibshift_net *net, uint32_t comm,
                         const struct ibshift_net_cause *why)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    ibshift_given_up_add_comm(&endpoint->given_up, comm, why, why);
    ibshift_loop_unlock(endpoint, 0);
}

static bool loop_has_given_up(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    return ibshift_loop_unlock(endpoint, ibshift_given_up_why(net, comm, why));
}

static void loop_enter(struct ibshift_net *net, uint32_t comm)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    ibshift_given_up_enter(net, comm);
    ibshift_loop_unlock(endpoint, 0);
}

static void loop_probe(struct ibshift_net *net, uint32_t peer)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    if (endpoint->loop->endpoints[peer].is_dead) {
        ibshift_loop_fail_peer(endpoint, peer, -ETIMEDOUT);
    }
    ibshift_loop_unlock(endpoint, 0);
}

static int loop_mem_register(struct ibshift_net *net, void *base, size_t length,
                             struct ibshift_net_mem **mem)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    struct ibshift_net_mem *created = NULL;

    if (!endpoint->loop->options.refuse_memory) {
        created = malloc(sizeof(*created));
    }
    if (created == NULL) {
        return ibshift_loop_unlock(endpoint, -ENOMEM);
    }
    created->base = base;
    created->length = length;
    endpoint->loop->mems++;
    *mem = created;
    return ibshift_loop_unlock(endpoint, 0);
}

static void loop_mem_release(struct ibshift_net *net, struct ibshift_net_mem *mem)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    endpoint->loop->mems--;
    free(mem);
    ibshift_loop_unlock(endpoint, 0);
}

static void loop_describe(struct ibshift_net *net, uint32_t peer, char *text, size_t size)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);

    snprintf(text, size, "loop peer %u: %s", peer,
             endpoint->is_dead        ? "this endpoint is dead"
             : endpoint->failed[peer] ? strerror(-endpoint->failed[peer])
                                      : "no error seen");
    ibshift_loop_unlock(endpoint, 0);
}

static uint64_t loop_now(struct ibshift_net *net)
{
    struct endpoint *endpoint = ibshift_loop_lock(net);
    uint64_t now = endpoint->loop->now;

    now += endpoint->ahead + (uint64_t)((double)now * endpoint->drift);
    ibshift_loop_unlock(endpoint, 0);
    return now;
}

static void loop_destroy(struct ibshift_net *net)
{
    (void)net; /* the loop owns it */
}

static const struct ibshift_net_ops loop_ops = {
    .send = loop_send,
    .recv = loop_recv,
    .channel = loop_channel,
    .poll = loop_poll,
    .cancel = loop_cancel,
    .abort = loop_abort,
    .give_up = loop_give_up,
    .has_given_up = loop_has_given_up,
    .enter = loop_enter,
    .revoke = ibshift_loop_revoke,
    .probe = loop_probe,
    .granted = granted,
    .leave = leave,
    .mem_register = loop_mem_register,
    .mem_release = loop_mem_release,
    .describe = loop_describe,
    .now = loop_now,
    .destroy = loop_destroy,
};

static int endpoint_init(struct endpoint *endpoint, struct ibshift_loop *loop, uint32_t self)
{
    endpoint->net = (struct ibshift_net){.ops = &loop_ops,
                                         .max_eager = loop->options.max_eager,
                                         .max_tried = loop->options.max_eager,
                                         .given_up = &endpoint->given_up,
                                         .given_up_count = &endpoint->given_up.comm_count};
    endpoint->loop = loop;
    endpoint->self = self;
    endpoint->sends_to_live = UINT64_MAX;
    if (loop->options.ahead > 0) {
        endpoint->ahead = ibshift_loop_random(loop, loop->options.ahead + 1);
    }
    if (loop->options.drift > 0) {
        endpoint->drift = loop->options.drift * (double)ibshift_loop_random(loop, 1001) / 1000;
    }
    ibshift_loop_list_init(&endpoint->arriving);
    ibshift_loop_list_init(&endpoint->ended);
    endpoint->failed = calloc(loop->options.peers, sizeof(*endpoint->failed));
    endpoint->channels = calloc(loop->options.peers, sizeof(*endpoint->channels));
    return endpoint->failed == NULL || endpoint->channels == NULL ? -ENOMEM : 0;
}

struct ibshift_loop *ibshift_loop_create(const struct ibshift_loop_options *options)
{
    struct ibshift_loop *loop = calloc(1, sizeof(*loop));
    int rc = 0;

    if (loop == NULL) {
        return NULL;
    }
    loop->options = *options;
    loop->random = options->seed != 0 ? options->seed : 1;
    pthread_mutex_init(&loop->lock, NULL);
    loop->endpoints = calloc(options->peers, sizeof(*loop->endpoints));
    if (loop->endpoints == NULL || ibshift_match_init(&loop->table) != 0) {
        ibshift_loop_free(loop);
        return NULL;
    }
    for (uint32_t i = 0; i < options->peers && rc == 0; i++) {
        rc = endpoint_init(&loop->endpoints[i], loop, i);
    }
    if (rc != 0) {
        ibshift_loop_free(loop);
        return NULL;
    }
    return loop;
}

struct ibshift_net *ibshift_loop_net(struct ibshift_loop *loop, uint32_t peer)
{
    return &loop->endpoints[peer].net;
}

void ibshift_loop_kill_after(struct ibshift_loop *loop, uint32_t peer, uint32_t sends)
{
    pthread_mutex_lock(&loop->lock);
    loop->endpoints[peer].sends_to_live = sends;
    pthread_mutex_unlock(&loop->lock);
}

size_t ibshift_loop_left(struct ibshift_loop *loop)
{
    size_t left;

    pthread_mutex_lock(&loop->lock);
    left = loop->messages + loop->mems;
    pthread_mutex_unlock(&loop->lock);
    return left;
}

static void free_chain(struct ibshift_loop *loop, struct message *message)
{
    while (message != NULL) {
        struct message *next = message->next;

        ibshift_loop_message_free(loop, message);
        message = next;
    }
}

void ibshift_loop_free(struct ibshift_loop *loop)
{
    for (size_t i = 0; loop->table.heads != NULL && i <= loop->table.mask; i++) {
        while (loop->table.heads[i] != NULL) {
            struct message *message = (struct message *)loop->table.heads[i];

            ibshift_match_remove(&message->match);
            ibshift_loop_message_free(loop, message);
        }
    }
    for (uint32_t i = 0; loop->endpoints != NULL && i < loop->options.peers; i++) {
        free_chain(loop, loop->endpoints[i].arriving.first);
        free_chain(loop, loop->endpoints[i].ended.first);
        free(loop->endpoints[i].failed);
        free(loop->endpoints[i].channels);
        ibshift_given_up_free(&loop->endpoints[i].given_up);
    }
    ibshift_match_free(&loop->table);
    free(loop->endpoints);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}
