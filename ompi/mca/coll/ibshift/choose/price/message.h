/* Of a priced run (choose/price.h): messages, in one memory for all, from which lists take them, and the queue of events. */
#ifndef IBSHIFT_CHOOSE_PRICE_MESSAGE_H
#define IBSHIFT_CHOOSE_PRICE_MESSAGE_H

#include "choose/param.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IBSHIFT_NO_MESSAGE (-1)

/* From its sending to its processing; or the grant of one, which has no bytes. */
struct ibshift_price_message {
    double ready;      /* the last byte is there */
    double begin, end; /* of the sender's processor's part */
    double least;      /* its last byte is not there before */
    double overhead;   /* of a long message, which is posted when its grant is there */
    uint64_t bytes;
    uint32_t from, to, key;
    uint32_t round, index; /* the send's; the receive's, once it is known */
    uint32_t flight;       /* of its rank's walk, while that is the one in sim->walk */
    uint32_t hops;         /* of the chain that ends with it */
    bool is_grant;
    bool stands; /* the grant of an earlier call: it was there before this one began */
    int32_t next;
};

struct ibshift_price_messages {
    struct ibshift_price_message *all; /* for free() */
    int32_t count, capacity, unused;
};

/* Its place, or IBSHIFT_NO_MESSAGE: there is no memory for one. */
int32_t ibshift_price_message_new(struct ibshift_price_messages *messages);

/* Lists: *list is the place of the first message. */
static inline void ibshift_price_message_put(struct ibshift_price_messages *messages, int32_t *list,
                                             int32_t index)
{
    messages->all[index].next = *list;
    *list = index;
}

static inline void ibshift_price_message_free(struct ibshift_price_messages *messages,
                                              int32_t index)
{
    ibshift_price_message_put(messages, &messages->unused, index);
}

void ibshift_price_message_insert(struct ibshift_price_messages *messages, int32_t *list,
                                  int32_t index); /* by ready */
/* The first of the list between these ranks with that key leaves it. */
int32_t ibshift_price_message_take(struct ibshift_price_messages *messages, int32_t *list,
                                   uint32_t from, uint32_t to, uint32_t key);

/* Of a message that is not to wait, on either side. */
static inline double ibshift_model_copying(const struct ibshift_model *model, uint64_t bytes)
{
    return model->at_once > 0 && (double)bytes <= model->at_once ? (double)bytes * model->eager_byte
                                                                 : 0;
}

static inline bool ibshift_model_needs_grant(const struct ibshift_model *model, uint64_t bytes)
{
    return model->at_once > 0 && (double)bytes > model->at_once;
}

/* A queue of events by time; equal times come out in the order they went in. */
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
