/* A queue of events by time; equal times come out in the order they went in. */
#ifndef IBSHIFT_CHOOSE_HEAP_H
#define IBSHIFT_CHOOSE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct ibshift_event {
    double time;
    uint32_t sequence; /* set by ibshift_heap_push() */
    uint32_t rank;
    int32_t item; /* the caller's */
};

struct ibshift_heap {
    struct ibshift_event *events;
    size_t count, capacity;
    uint32_t sequence;
};

/* 0 or -ENOMEM. A heap of zeros is empty; whoever pushed frees heap->events. */
int ibshift_heap_push(struct ibshift_heap *heap, struct ibshift_event event);

/* The heap is not empty. */
struct ibshift_event ibshift_heap_pop(struct ibshift_heap *heap);

#endif
