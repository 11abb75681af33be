#include "net_loop_store.h"

#include <errno.h>
#include <stdlib.h>

int ibshift_loop_table_init(struct table *table, uint32_t peers)
{
    table->buckets = 64;
    while (table->buckets < 4 * (size_t)peers) {
        table->buckets *= 2;
    }
    table->heads = calloc(table->buckets, sizeof(*table->heads));
    return table->heads == NULL ? -ENOMEM : 0;
}

static struct message **head_of(struct table *table, uint32_t from, uint32_t to,
                                const struct ibshift_net_key *key)
{
    uint64_t hash = (uint64_t)from << 32 | to;

    hash = hash * 0x9e3779b97f4a7c15u + key->tag;
    hash = hash * 0x9e3779b97f4a7c15u + key->seq;
    hash = hash * 0x9e3779b97f4a7c15u + key->comm;
    return &table->heads[(hash ^ hash >> 32) & (table->buckets - 1)];
}

void ibshift_loop_table_put(struct table *table, struct message *message)
{
    struct message **head = head_of(table, message->from, message->to, &message->key);

    message->next = *head;
    *head = message;
}

static bool is_same_key(const struct ibshift_net_key *a, const struct ibshift_net_key *b)
{
    return a->tag == b->tag && a->seq == b->seq && a->comm == b->comm;
}

struct message **ibshift_loop_table_find(struct table *table, enum place place, uint32_t from,
                                         uint32_t to, const struct ibshift_net_key *key)
{
    struct message **link;

    for (link = head_of(table, from, to, key); *link != NULL; link = &(*link)->next) {
        const struct message *m = *link;

        if (m->place == place && m->from == from && m->to == to && is_same_key(&m->key, key)) {
            return link;
        }
    }
    return NULL;
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
               m->key.comm == sweep->comm && m->key.seq == sweep->seq;
    case CANCEL:
        return m->key.comm == sweep->comm && m->key.seq == sweep->seq &&
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
    for (size_t i = 0; i < loop->table.buckets; i++) {
        for (struct message **link = &loop->table.heads[i]; *link != NULL;) {
            struct message *message = *link;

            if (is_swept(loop, sweep, message)) {
                *link = message->next;
                ibshift_loop_list_append(&taken, message);
            } else {
                link = &message->next;
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
    if (!ibshift_given_up_add_by(&other->given_up, endpoint->self, &key)) {
        ibshift_loop_fail_peer(other, endpoint->self, -ECONNABORTED);
        return;
    }
    sweep_all(endpoint->loop,
              &(struct sweep){
                  .why = ABORT, .self = peer, .peer = endpoint->self, .comm = comm, .seq = seq});
}
