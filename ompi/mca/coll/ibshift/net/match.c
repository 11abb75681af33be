#include <errno.h>
#include <stdlib.h>

#include "net/match.h"

enum { FIRST_SIZE = 256 };

static uint32_t hash(uint32_t peer, const struct ibshift_net_key *key)
{
    uint64_t h = ((uint64_t)peer << 32 | key->tag) * 0x9e3779b97f4a7c15u;
    h ^= ((uint64_t)key->comm << 32 | key->seq) * 0xc2b2ae3d27d4eb4fu;
    return (uint32_t)(h >> 32);
}

static struct ibshift_match **head(const struct ibshift_match_table *table, uint32_t peer,
                                   const struct ibshift_net_key *key)
{
    return &table->heads[hash(peer, key) & table->mask];
}

int ibshift_match_init(struct ibshift_match_table *table)
{
    table->heads = calloc(FIRST_SIZE, sizeof(*table->heads));
    table->mask = FIRST_SIZE - 1;
    table->count = 0;
    return table->heads == NULL ? -ENOMEM : 0;
}

void ibshift_match_free(struct ibshift_match_table *table)
{
    free(table->heads);
    table->heads = NULL;
}

static void grow(struct ibshift_match_table *table)
{
    struct ibshift_match_table bigger = {.mask = table->mask * 2 + 1, .count = table->count};

    bigger.heads = calloc((size_t)bigger.mask + 1, sizeof(*bigger.heads));
    if (bigger.heads == NULL) {
        return;
    }
    for (uint32_t i = 0; i <= table->mask; i++) {
        while (table->heads[i] != NULL) {
            struct ibshift_match *entry = table->heads[i];
            struct ibshift_match **to = head(&bigger, entry->peer, &entry->key);
            table->heads[i] = entry->next;
            entry->next = *to;
            *to = entry;
        }
    }
    free(table->heads);
    *table = bigger;
}

void ibshift_match_add(struct ibshift_match_table *table, struct ibshift_match *entry)
{
    struct ibshift_match **to;

    if (entry->table != NULL) {
        return;
    }
    if (table->count > table->mask) {
        grow(table);
    }
    to = head(table, entry->peer, &entry->key);
    entry->table = table;
    entry->next = *to;
    *to = entry;
    table->count++;
}

void ibshift_match_remove(struct ibshift_match *entry)
{
    struct ibshift_match **link;

    if (entry->table == NULL) {
        return;
    }
    link = head(entry->table, entry->peer, &entry->key);
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    entry->table->count--;
    entry->table = NULL;
}

struct ibshift_match *ibshift_match_find(const struct ibshift_match_table *table, uint32_t peer,
                                         const struct ibshift_net_key *key)
{
    struct ibshift_match *entry = *head(table, peer, key);
    while (entry != NULL && (entry->peer != peer || entry->key.tag != key->tag ||
                             entry->key.seq != key->seq || entry->key.comm != key->comm)) {
        entry = entry->next;
    }
    return entry;
}
