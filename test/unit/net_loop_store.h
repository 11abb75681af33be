#ifndef TEST_UNIT_NET_LOOP_STORE_H
#define TEST_UNIT_NET_LOOP_STORE_H

/* Where the messages of a loop are: on the wire, in the table, or ended. */

#include "net/given_up.h"
#include "net/match.h"
#include "net_loop.h"

#include <pthread.h>
#include <stdlib.h>

enum place { ON_THE_WIRE, PARKED, POSTED, ENDED };

struct message {
    struct ibshift_match match; /* first: the table holds these */
    struct message *next;
    enum place place; /* PARKED is a send, POSTED a receive; both are in the table */
    uint32_t from;
    uint32_t to;
    bool is_recv;
    bool has_copy; /* a send that is over for its sender: its bytes are in copy */
    bool is_held;  /* counts against the receiver's room */
    int status;
    size_t length;
    void *buffer;
    uint64_t cookie;
    uint64_t due; /* a receive: when the sender may know of its grant */
    uint64_t hint;
    size_t early;       /* 0: nobody wants to know, or both do already */
    uint64_t early_due; /* on the wire */
    unsigned char copy[];
};

struct list {
    struct message *first;
    struct message **end;
};

struct ibshift_net_mem {
    char *base;
    size_t length;
};

struct loop_channel {
    struct ibshift_net_channel channel;
    struct endpoint *endpoint;
    uint32_t peer;
};

struct endpoint {
    struct ibshift_net net;
    struct ibshift_loop *loop;
    uint32_t self;
    uint32_t on_the_wire; /* own sends */
    uint32_t held;        /* early messages of others */
    uint64_t sends_to_live;
    uint64_t ahead; /* of its clock */
    double drift;
    bool is_dead;
    struct list arriving; /* sends to this endpoint */
    struct list ended;    /* events to be polled */
    struct ibshift_given_up given_up;
    int *failed;                   /* per peer: 0, or the status of its failure */
    struct loop_channel *channels; /* by peer */
};

/* lock covers the loop, its endpoints and all messages, and every copy from buffer to buffer. */
struct ibshift_loop {
    pthread_mutex_t lock;
    struct ibshift_loop_options options;
    uint64_t now;
    uint64_t random;
    size_t messages;
    size_t mems;
    struct ibshift_match_table table; /* by sender, receiver and key: there is one */
    struct endpoint *endpoints;
};

static inline uint64_t ibshift_loop_random(struct ibshift_loop *loop, uint64_t bound)
{
    uint64_t x = loop->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    loop->random = x;
    return (x >> 11) % bound;
}

static inline uint64_t ibshift_loop_after_delay(struct ibshift_loop *loop)
{
    return loop->now +
           (loop->options.delay ? ibshift_loop_random(loop, loop->options.delay + 1) : 0);
}

static inline struct endpoint *ibshift_loop_lock(struct ibshift_net *net)
{
    struct endpoint *endpoint = (struct endpoint *)net;

    pthread_mutex_lock(&endpoint->loop->lock);
    return endpoint;
}

static inline int ibshift_loop_unlock(struct endpoint *endpoint, int result)
{
    pthread_mutex_unlock(&endpoint->loop->lock);
    return result;
}

static inline void ibshift_loop_list_init(struct list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static inline void ibshift_loop_list_append(struct list *list, struct message *message)
{
    message->next = NULL;
    *list->end = message;
    list->end = &message->next;
}

static inline struct message *ibshift_loop_list_take(struct list *list, struct message **link)
{
    struct message *message = *link;

    *link = message->next;
    if (list->end == &message->next) {
        list->end = link;
    }
    return message;
}

void ibshift_loop_put(struct ibshift_loop *loop, struct message *message);

/* The one at this place, to be taken out with ibshift_match_remove(); NULL: none. */
struct message *ibshift_loop_find(struct ibshift_loop *loop, enum place place, uint32_t from,
                                  uint32_t to, const struct ibshift_net_key *key);

static inline uint32_t owner_of(const struct message *message)
{
    return message->is_recv ? message->to : message->from;
}

static inline bool is_short(const struct ibshift_loop *loop, const struct message *message)
{
    return message->length <= loop->options.max_eager;
}

/* The event for the owner; a send that is over for its sender is only freed. */
void ibshift_loop_message_end(struct ibshift_loop *loop, struct message *message, int status,
                              uint64_t due);
/* News for the owner of a message that has not ended; dropped where there is no memory. */
void ibshift_loop_message_news(struct ibshift_loop *loop, const struct message *message,
                               int status);

static inline void ibshift_loop_message_free(struct ibshift_loop *loop, struct message *message)
{
    loop->messages--;
    free(message);
}

/* Faults; all under the lock. */
void ibshift_loop_die(struct endpoint *endpoint);
void ibshift_loop_fail_peer(struct endpoint *endpoint, uint32_t peer, int status);
void ibshift_loop_drop(struct endpoint *endpoint, uint32_t comm, uint32_t seq);
void ibshift_loop_revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing,
                         const uint32_t *seq);
void ibshift_loop_give_up(struct endpoint *endpoint, uint32_t peer, uint32_t comm, uint32_t seq);

#endif
