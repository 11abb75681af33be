#include "proof/net_loop_store.h"

#include <errno.h>
#include <stdlib.h>

void ibshift_loop_list_init(struct list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

void ibshift_loop_list_append(struct list *list, struct message *message)
{
    message->next = NULL;
    *list->end = message;
    list->end = &message->next;
}

struct message *ibshift_loop_list_take(struct list *list, struct message **link)
{
    struct message *message = *link;

    *link = message->next;
    if (list->end == &message->next) {
        list->end = link;
    }
    return message;
}

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

void ibshift_loop_message_free(struct ibshift_loop *loop, struct message *message)
{
    loop->messages--;
    free(message);
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

uint64_t ibshift_loop_random(struct ibshift_loop *loop, uint64_t bound)
{
    uint64_t x = loop->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    loop->random = x;
    return (x >> 11) % bound;
}

uint64_t ibshift_loop_after_delay(struct ibshift_loop *loop)
{
    return loop->now +
           (loop->options.delay ? ibshift_loop_random(loop, loop->options.delay + 1) : 0);
}
