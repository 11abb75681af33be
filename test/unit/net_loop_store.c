#include "net_loop_store.h"

#include <errno.h>
#include <stdlib.h>

/* A pair of ranks as the table's peer. */
static uint32_t pair_of(const struct ibshift_loop *loop, uint32_t from, uint32_t to)
{
    return to * loop->options.peers + from;
}

void ibshift_loop_put(struct ibshift_loop *loop, struct message *message)
{
    message->match.peer = pair_of(loop, message->from, message->to);
    ibshift_match_add(&loop->table, &message->match);
}

struct message *ibshift_loop_find(struct ibshift_loop *loop, enum place place, uint32_t from,
                                  uint32_t to, const struct ibshift_net_key *key)
{
    struct message *m =
        (struct message *)ibshift_match_find(&loop->table, pair_of(loop, from, to), key);

    return m != NULL && m->place == place ? m : NULL;
}

void ibshift_loop_message_end(struct ibshift_loop *loop, struct message *message, int status,
                              uint64_t due)
{
    if (message->has_copy) {
        ibshift_loop_message_free(loop, message);
        return;
    }
    message->place = ENDED;
    message->status = status;
    message->due = due;
    ibshift_loop_list_append(&loop->endpoints[owner_of(message)].ended, message);
}

void ibshift_loop_message_news(struct ibshift_loop *loop, const struct message *message, int status)
{
    struct message *news = malloc(sizeof(*news));

    if (news != NULL) {
        *news = *message;
        news->match.table = NULL;
        loop->messages++;
        ibshift_loop_message_end(loop, news, status, loop->now);
    }
}

/* Which messages a fault takes from the wire and out of the table. */
struct sweep {
    enum { DEATH, FAILED_PEER, CANCEL, ABORT } why;
    uint32_t self;
    uint32_t peer;
    uint32_t comm;
    uint32_t seq;
};

static bool is_swept(const struct ibshift_loop *loop, const struct sweep *sweep,
                     const struct message *m)
{
    bool is_own = !m->has_copy && owner_of(m) == sweep->self;

    switch (sweep->why) {
    case DEATH: /* and what others send to the dead */
        return is_own || (!m->is_recv && m->to == sweep->self);
    case FAILED_PEER:
        return is_own && (m->is_recv ? m->from : m->to) == sweep->peer;
    case ABORT:
        return is_own && (m->is_recv ? m->from : m->to) == sweep->peer &&
               m->match.key.comm == sweep->comm && m->match.key.seq == sweep->seq;
    case CANCEL:
        return m->match.key.comm == sweep->comm && m->match.key.seq == sweep->seq &&
               (is_own || (m->place == PARKED && m->to == sweep->self && is_short(loop, m)));
    }
    return false;
}

static void end_swept(struct ibshift_loop *loop, const struct sweep *sweep, struct message *m)
{
    static const int own_status[] = {[DEATH] = -EIO,
                                     [FAILED_PEER] = -ECONNRESET,
                                     [CANCEL] = -ECANCELED,
                                     [ABORT] = -ECONNABORTED};
    bool is_own = owner_of(m) == sweep->self;

    if (m->place == ON_THE_WIRE) {
        loop->endpoints[m->from].on_the_wire--;
    }
    if (m->is_held) {
        loop->endpoints[m->to].held--;
    }
    if (is_own) {
        ibshift_loop_message_end(loop, m, own_status[sweep->why], loop->now);
    } else if (sweep->why == DEATH) {
        ibshift_loop_message_end(loop, m, -ETIMEDOUT, loop->now + loop->options.timeout);
    } else {
        ibshift_loop_message_end(loop, m, 0, loop->now);
    }
}

static void sweep_all(struct ibshift_loop *loop, const struct sweep *sweep)
{
    struct list taken;

    ibshift_loop_list_init(&taken);
    for (uint32_t i = 0; i < loop->options.peers; i++) {
        struct list *arriving = &loop->endpoints[i].arriving;

        for (struct message **link = &arriving->first; *link != NULL;) {
            if (is_swept(loop, sweep, *link)) {
                ibshift_loop_list_append(&taken, ibshift_loop_list_take(arriving, link));
            } else {
                link = &(*link)->next;
            }
        }
    }
    for (size_t i = 0; i <= loop->table.mask; i++) {
        for (struct ibshift_match *entry = loop->table.heads[i], *next; entry != NULL;
             entry = next) {
            struct message *message = (struct message *)entry;

            next = entry->next;
            if (is_swept(loop, sweep, message)) {
                ibshift_match_remove(entry);
                ibshift_loop_list_append(&taken, message);
            }
        }
    }
    while (taken.first != NULL) {
        end_swept(loop, sweep, ibshift_loop_list_take(&taken, &taken.first));
    }
}

void ibshift_loop_fail_peer(struct endpoint *endpoint, uint32_t peer, int status)
{
    if (endpoint->failed[peer] == 0 && peer != endpoint->self) {
        endpoint->failed[peer] = status;
        sweep_all(endpoint->loop,
                  &(struct sweep){.why = FAILED_PEER, .self = endpoint->self, .peer = peer});
    }
}

void ibshift_loop_die(struct endpoint *endpoint)
{
    endpoint->is_dead = true;
    sweep_all(endpoint->loop, &(struct sweep){.why = DEATH, .self = endpoint->self});
}

void ibshift_loop_drop(struct endpoint *endpoint, uint32_t comm, uint32_t seq)
{
    ibshift_given_up_add_here(&endpoint->given_up, comm, seq);
    sweep_all(endpoint->loop,
              &(struct sweep){.why = CANCEL, .self = endpoint->self, .comm = comm, .seq = seq});
}

void ibshift_loop_give_up(struct endpoint *endpoint, uint32_t peer, uint32_t comm, uint32_t seq)
{
    struct endpoint *other = &endpoint->loop->endpoints[peer];
    struct ibshift_net_key key = {.comm = comm, .seq = seq};

    if (endpoint->is_dead || other->is_dead ||
        ibshift_given_up_comm(&other->given_up, comm) != NULL ||
        ibshift_given_up_by(&other->given_up, endpoint->self, &key)) {
        return;
    }
    ibshift_given_up_add_by(&other->given_up, endpoint->self, &key);
    sweep_all(endpoint->loop,
              &(struct sweep){
                  .why = ABORT, .self = peer, .peer = endpoint->self, .comm = comm, .seq = seq});
}

/* No grant of a loop stands, but ops that are opened may believe it. */
void ibshift_loop_revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing,
                         const uint32_t *seq)
{
    (void)net, (void)comm, (void)standing, (void)seq;
}

void ibshift_loop_jump(struct ibshift_loop *loop, uint32_t peer, uint64_t ahead)
{
    pthread_mutex_lock(&loop->lock);
    loop->endpoints[peer].ahead += ahead;
    pthread_mutex_unlock(&loop->lock);
}
