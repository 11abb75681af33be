#include "choose/message.h"

#include <stdlib.h>

enum { FIRST = 1024, MOST = 1 << 24 };

int32_t ibshift_price_message_new(struct ibshift_price_messages *messages)
{
    if (messages->unused != IBSHIFT_NO_MESSAGE) {
        int32_t index = messages->unused;

        messages->unused = messages->all[index].next;
        return index;
    }
    if (messages->count == messages->capacity) {
        int32_t capacity = messages->capacity > 0 ? 2 * messages->capacity : FIRST;
        struct ibshift_price_message *all =
            capacity <= MOST ? realloc(messages->all, (size_t)capacity * sizeof(*all)) : NULL;

        if (all == NULL) {
            return IBSHIFT_NO_MESSAGE;
        }
        messages->all = all;
        messages->capacity = capacity;
    }
    return messages->count++;
}

void ibshift_price_message_insert(struct ibshift_price_messages *messages, int32_t *list,
                                  int32_t index)
{
    struct ibshift_price_message *all = messages->all;

    while (*list != IBSHIFT_NO_MESSAGE && all[*list].ready <= all[index].ready) {
        list = &all[*list].next;
    }
    ibshift_price_message_put(messages, list, index);
}

int32_t ibshift_price_message_take(struct ibshift_price_messages *messages, int32_t *list,
                                   uint32_t from, uint32_t to, uint32_t key)
{
    for (; *list != IBSHIFT_NO_MESSAGE; list = &messages->all[*list].next) {
        const struct ibshift_price_message *m = &messages->all[*list];
        int32_t index = *list;

        if (m->from == from && m->to == to && m->key == key) {
            *list = m->next;
            return index;
        }
    }
    return IBSHIFT_NO_MESSAGE;
}
