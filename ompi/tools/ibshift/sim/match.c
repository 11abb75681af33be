/* Messages by sender, receiver and key: chains in a table that grows with their number. */
#include "sim/net_private.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 };

static uint32_t bucket_of(const struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key)
{
    uint64_t h = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15ull;

    h ^= ((uint64_t)key->seq << 32 | key->tag) * 0xc2b2ae3d27d4eb4full;
    h ^= h >> 29;
    h = (h + key->comm) * 0x165667b19e3779f9ull;
    return (uint32_t)(h >> 32) & (n->buckets - 1);
}

uint32_t sim_message_find(const struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key)
{
    uint32_t i;

    if (n->buckets == 0) {
        return SIM_NO_MESSAGE;
    }
    i = n->heads[bucket_of(n, from, to, key)];
    while (i != SIM_NO_MESSAGE) {
        const struct sim_message *m = &n->messages[i];

        if (m->from == from && m->to == to && memcmp(&m->key, key, sizeof(*key)) == 0) {
            break;
        }
        i = m->next;
    }
    return i;
}

static void put(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    uint32_t *head = &n->heads[bucket_of(n, m->from, m->to, &m->key)];

    m->next = *head;
    *head = message;
}

/* Twice the room, for messages and buckets alike. */
static int grow(struct sim_net *n)
{
    uint32_t room = n->room == 0 ? FIRST_ROOM : n->room * 2;
    struct sim_message *messages = realloc(n->messages, room * sizeof(*messages));
    uint32_t *heads;

    if (messages == NULL) {
        return -1;
    }
    n->messages = messages;
    heads = malloc(room * sizeof(*heads));
    if (heads == NULL) {
        return -1;
    }
    free(n->heads);
    n->heads = heads;
    n->room = n->buckets = room;
    memset(heads, 0xff, room * sizeof(*heads)); /* SIM_NO_MESSAGE */
    for (uint32_t i = 0; i < n->used; i++) {
        if (n->messages[i].flags != 0 || n->messages[i].pending > 0) {
            put(n, i);
        }
    }
    return 0;
}

uint32_t sim_message_make(struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key)
{
    uint32_t i = n->unused;

    if (i != SIM_NO_MESSAGE) {
        n->unused = n->messages[i].next;
    } else {
        if (n->used == n->room && grow(n) != 0) {
            return SIM_NO_MESSAGE;
        }
        i = n->used++;
    }
    n->messages[i] = (struct sim_message){.from = from, .to = to, .key = *key};
    put(n, i);
    if (++n->known > n->stats.most) {
        n->stats.most = n->known;
    }
    return i;
}

void sim_message_drop(struct sim_net *n, uint32_t message)
{
    struct sim_message *m = &n->messages[message];
    uint32_t *link = &n->heads[bucket_of(n, m->from, m->to, &m->key)];

    while (*link != message) {
        link = &n->messages[*link].next;
    }
    *link = m->next;
    m->flags = 0;
    m->next = n->unused;
    n->unused = message;
    n->known--;
}
