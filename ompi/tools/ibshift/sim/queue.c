#include "sim/queue.h"

enum { HEAP_WAYS = 4 };

void sim_queue_init(struct sim_queue *queue)
{
    memset(queue, 0, sizeof(*queue));
    queue->next[0] = SIM_NEVER;
}

void sim_queue_free(struct sim_queue *queue)
{
    for (unsigned i = 0; i < queue->buckets; i++) {
        free(queue->bucket[i].ring);
    }
    free(queue->heap);
}

int sim_queue_bucket(struct sim_queue *queue, int kind, uint64_t delay)
{
    unsigned buckets = queue->buckets;

    for (unsigned i = 0; i < buckets; i++) {
        if (queue->bucket[i].kind == kind && queue->bucket[i].delay == delay) {
            return (int)i;
        }
    }
    if (buckets == SIM_QUEUE_BUCKETS) {
        return -1;
    }
    queue->bucket[buckets] = (struct sim_bucket){.kind = kind, .delay = delay};
    queue->next[buckets + 1] = queue->next[buckets]; /* the heap's place is behind all buckets */
    queue->next[buckets] = SIM_NEVER;
    queue->buckets++;
    return (int)buckets;
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
    uint32_t at = queue->heaped++;

    if (at == queue->heap_room) {
        queue->heap = sim_grown(queue->heap, &queue->heap_room, sizeof(*queue->heap));
    }
    while (at > 0 && is_earlier(&entry, &queue->heap[(at - 1) / HEAP_WAYS])) {
        queue->heap[at] = queue->heap[(at - 1) / HEAP_WAYS];
        at = (at - 1) / HEAP_WAYS;
    }
    queue->heap[at] = entry;
    queue->next[queue->buckets] = queue->heap[0].event.time;
}

static uint32_t earliest_child(const struct sim_queue *queue, uint32_t parent)
{
    uint32_t first = parent * HEAP_WAYS + 1, best = first;

    for (uint32_t i = first + 1; i < first + HEAP_WAYS && i < queue->heaped; i++) {
        best = is_earlier(&queue->heap[i], &queue->heap[best]) ? i : best;
    }
    return best;
}

struct sim_event sim_queue_pop_heap(struct sim_queue *queue, int *kind)
{
    struct sim_heap_event first = queue->heap[0], last = queue->heap[--queue->heaped];
    uint32_t at = 0;

    while (at * HEAP_WAYS + 1 < queue->heaped) {
        uint32_t child = earliest_child(queue, at);

        if (!is_earlier(&queue->heap[child], &last)) {
            break;
        }
        queue->heap[at] = queue->heap[child];
        at = child;
    }
    if (queue->heaped > 0) {
        queue->heap[at] = last;
    }
    queue->next[queue->buckets] = queue->heaped > 0 ? queue->heap[0].event.time : SIM_NEVER;
    *kind = first.turn & 0xff;
    return first.event;
}
