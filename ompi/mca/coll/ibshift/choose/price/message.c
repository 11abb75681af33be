#include "choose/price/message.h"

#include <errno.h>
#include <stdbool.h>
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

enum { FIRST_CAPACITY = 1024 };

static bool is_before(const struct ibshift_event *a, const struct ibshift_event *b)
{
    return a->time < b->time || (a->time == b->time && (int32_t)(a->sequence - b->sequence) < 0);
}

static int grow(struct ibshift_heap *heap)
{
    size_t capacity = heap->capacity > 0 ? 2 * heap->capacity : FIRST_CAPACITY;
    struct ibshift_event *events = realloc(heap->events, capacity * sizeof(*events));

    if (events == NULL) {
        return -ENOMEM;
    }
    heap->events = events;
    heap->capacity = capacity;
    return 0;
}

/* Four children a node: half the levels of two, and the four lie in two cache lines. */
int ibshift_heap_push(struct ibshift_heap *heap, struct ibshift_event event)
{
    size_t at = heap->count;

    if (at == heap->capacity && grow(heap) != 0) {
        return -ENOMEM;
    }
    event.sequence = heap->sequence++;
    heap->count++;
    while (at > 0 && is_before(&event, &heap->events[(at - 1) / 4])) {
        heap->events[at] = heap->events[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    heap->events[at] = event;
    return 0;
}

static size_t least_child(const struct ibshift_heap *heap, size_t at)
{
    size_t child = 4 * at + 1, least = child;
    size_t end = child + 4 < heap->count ? child + 4 : heap->count;

    while (++child < end) {
        if (is_before(&heap->events[child], &heap->events[least])) {
            least = child;
        }
    }
    return least;
}

struct ibshift_event ibshift_heap_pop(struct ibshift_heap *heap)
{
    struct ibshift_event first = heap->events[0];
    struct ibshift_event last = heap->events[--heap->count];
    size_t at = 0;

    while (4 * at + 1 < heap->count) {
        size_t child = least_child(heap, at);

        if (!is_before(&heap->events[child], &last)) {
            break;
        }
        heap->events[at] = heap->events[child];
        at = child;
    }
    heap->events[at] = last;
    return first;
}
