/*
 * Events of a simulation, in the order of their times. Most of them happen a constant time after
 * another one (a packet's length, a cable's), so each such delay has a bucket: a ring in which events
 * are in order by themselves. All others go through a heap. Equal times: buckets first, by number,
 * then the heap in the order of insertion, so that a run depends on its seed alone.
 */
#ifndef IBSHIFT_SIM_QUEUE_H
#define IBSHIFT_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_NEVER UINT64_MAX

/* A simulation that gets no memory ends here: there is nothing that it could say or keep. */
static inline void *sim_need(void *memory)
{
    if (memory == NULL) {
        fputs("ibshift sim: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* At least one, all zero. */
static inline void *sim_zeroed(size_t count, size_t size)
{
    return sim_need(calloc(count + 1, size));
}

/* The array with twice the room, or with its first. */
static inline void *sim_grown(void *array, uint32_t *room, size_t size)
{
    *room = *room == 0 ? 16 : *room * 2;
    return sim_need(*room == 0 ? NULL : realloc(array, *room * size));
}

/* Likewise a ring that is full: what was before `first` comes behind its old room. */
static inline void *sim_ring_grown(void *ring, uint32_t *room, uint32_t first, size_t size)
{
    uint32_t before = *room;
    char *grown = sim_grown(ring, room, size);

    memcpy(grown + before * size, grown, first * size);
    return grown;
}

enum { SIM_QUEUE_BUCKETS = 64 };

struct sim_event {
    uint64_t time; /* ps */
    uint32_t a, b;
};

struct sim_bucket {
    struct sim_event *ring;
    uint32_t room; /* a power of two */
    uint32_t first, count;
    uint64_t delay;
    int kind;
};

struct sim_heap_event {
    struct sim_event event;
    uint64_t turn; /* of insertion, then 8 bits of kind */
};

struct sim_queue {
    uint64_t now;
    uint64_t
        next[SIM_QUEUE_BUCKETS + 1]; /* time of each bucket's first event; then that of the heap */
    struct sim_bucket bucket[SIM_QUEUE_BUCKETS];
    unsigned buckets;
    struct sim_heap_event *heap;
    uint32_t heaped, heap_room;
    uint64_t turns, events;
};

void sim_queue_init(struct sim_queue *queue);
void sim_queue_free(struct sim_queue *queue);

/* The bucket for events of this kind that come `delay` after the event that causes them; -1 when
 * there are no more buckets: use sim_queue_at(). */
int sim_queue_bucket(struct sim_queue *queue, int kind, uint64_t delay);

/* An event of the bucket's kind, the bucket's delay from now. */
static inline void sim_queue_after(struct sim_queue *queue, int which, uint32_t a, uint32_t b)
{
    struct sim_bucket *bucket = &queue->bucket[which];
    struct sim_event *event;

    if (__builtin_expect(bucket->count == bucket->room, 0)) {
        bucket->ring =
            sim_ring_grown(bucket->ring, &bucket->room, bucket->first, sizeof(*bucket->ring));
    }
    event = &bucket->ring[(bucket->first + bucket->count) & (bucket->room - 1)];
    event->time = queue->now + bucket->delay;
    event->a = a;
    event->b = b;
    if (bucket->count++ == 0) {
        queue->next[which] = event->time;
    }
}

/* Not before now. kind: 0..255 */
void sim_queue_at(struct sim_queue *queue, uint64_t time, int kind, uint32_t a, uint32_t b);

struct sim_event sim_queue_pop_heap(struct sim_queue *queue, int *kind);

/* Takes the next event and moves the clock to it; false: none is left. */
static inline bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event, int *kind)
{
    uint64_t time = queue->next[0];
    unsigned best = 0;

    for (unsigned i = 1; i <= queue->buckets; i++) {
        if (queue->next[i] < time) {
            time = queue->next[i];
            best = i;
        }
    }
    if (time == SIM_NEVER) {
        return false;
    }
    queue->now = time;
    queue->events++;
    if (best == queue->buckets) {
        *event = sim_queue_pop_heap(queue, kind);
    } else {
        struct sim_bucket *bucket = &queue->bucket[best];

        *event = bucket->ring[bucket->first];
        *kind = bucket->kind;
        bucket->first = (bucket->first + 1) & (bucket->room - 1);
        bucket->count--;
        queue->next[best] = bucket->count > 0 ? bucket->ring[bucket->first].time : SIM_NEVER;
    }
    return true;
}

#endif
