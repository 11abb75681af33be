#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256, HEAP_WAYS = 4 };

void sim_queue_init(struct sim_queue *queue)
{
    memset(queue, 0, sizeof(*queue));
    queue->next[0] = SIM_NEVER;
}

void sim_queue_free(struct sim_queue *queue)
{
    for (unsigned i = 0; i < queue->lanes; i++) {
        free(queue->lane[i].ring);
    }
    free(queue->heap);
}

int sim_queue_lane(struct sim_queue *queue, int kind, uint64_t delay)
{
    unsigned lanes = queue->lanes;

    for (unsigned i = 0; i < lanes; i++) {
        if (queue->lane[i].kind == kind && queue->lane[i].delay == delay) {
            return (int)i;
        }
    }
    if (lanes == SIM_QUEUE_LANES) {
        return -1;
    }
    queue->lane[lanes] = (struct sim_lane){.kind = kind, .delay = delay};
    queue->next[lanes + 1] = queue->next[lanes]; /* the heap's place is behind all lanes */
    queue->next[lanes] = SIM_NEVER;
    queue->lanes++;
    return (int)lanes;
}

void sim_queue_grow_lane(struct sim_queue *queue, struct sim_lane *lane)
{
    uint32_t room = lane->room == 0 ? FIRST_ROOM : lane->room * 2;
    struct sim_event *ring = malloc(room * sizeof(*ring));

    if (ring == NULL) {
        queue->is_broken = true;
        return;
    }
    for (uint32_t i = 0; i < lane->count; i++) {
        ring[i] = lane->ring[(lane->first + i) & (lane->room - 1)];
    }
    free(lane->ring);
    lane->ring = ring;
    lane->room = room;
    lane->first = 0;
}

static bool is_earlier(const struct sim_heap_event *one, const struct sim_heap_event *other)
{
    return one->event.time != other->event.time ? one->event.time < other->event.time
                                                : one->turn < other->turn;
}

void sim_queue_at(struct sim_queue *queue, uint64_t time, int kind, uint32_t a, uint32_t b)
{
    struct sim_heap_event entry = {.event = {time, a, b},
                                   .turn = queue->turns++ << 8 | (unsigned)kind};
    size_t at = queue->heaped;

    if (at == queue->heap_room) {
        size_t room = at == 0 ? FIRST_ROOM : at * 2;
        struct sim_heap_event *heap = realloc(queue->heap, room * sizeof(*heap));

        if (heap == NULL) {
            queue->is_broken = true;
            return;
        }
        queue->heap = heap;
        queue->heap_room = room;
    }
    queue->heaped++;
    while (at > 0 && is_earlier(&entry, &queue->heap[(at - 1) / HEAP_WAYS])) {
        queue->heap[at] = queue->heap[(at - 1) / HEAP_WAYS];
        at = (at - 1) / HEAP_WAYS;
    }
    queue->heap[at] = entry;
    queue->next[queue->lanes] = queue->heap[0].event.time;
}

static size_t earliest_child(const struct sim_queue *queue, size_t parent)
{
    size_t first = parent * HEAP_WAYS + 1, best = first;

    for (size_t i = first + 1; i < first + HEAP_WAYS && i < queue->heaped; i++) {
        best = is_earlier(&queue->heap[i], &queue->heap[best]) ? i : best;
    }
    return best;
}

struct sim_event sim_queue_pop_heap(struct sim_queue *queue, int *kind)
{
    struct sim_heap_event first = queue->heap[0], last = queue->heap[--queue->heaped];
    size_t at = 0;

    while (at * HEAP_WAYS + 1 < queue->heaped) {
        size_t child = earliest_child(queue, at);

        if (!is_earlier(&queue->heap[child], &last)) {
            break;
        }
        queue->heap[at] = queue->heap[child];
        at = child;
    }
    if (queue->heaped > 0) {
        queue->heap[at] = last;
    }
    queue->next[queue->lanes] = queue->heaped > 0 ? queue->heap[0].event.time : SIM_NEVER;
    *kind = first.turn & 0xff;
    return first.event;
}
