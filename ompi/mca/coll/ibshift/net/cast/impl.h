#ifndef IBSHIFT_NET_CAST_IMPL_H
#define IBSHIFT_NET_CAST_IMPL_H

/* A multicast group as its files see it: net/cast/open.c makes it, net/cast/out.c and net/cast/in.c have its messages. */

#include "net/cast/cast.h"
#include "net/verbs/inside.h"

enum {
    IBSHIFT_CAST_ROUTE = 40, /* bytes of the route header before each datagram */
    IBSHIFT_CAST_RECEIVES = 4 * IBSHIFT_CAST_WINDOW,
    IBSHIFT_CAST_HELD = 2 * IBSHIFT_CAST_WINDOW,
};

/* In front of the payload. */
struct ibshift_cast_head {
    uint64_t group;
    uint32_t from; /* rank */
    uint32_t number;
    struct ibshift_net_key key;
    uint32_t length;
};
static_assert(sizeof(struct ibshift_cast_head) == 32, "part of the wire format");

/* What a work request id points to. */
struct ibshift_cast_buffer {
    struct ibshift_cast *cast;
    uint8_t *data;
};

/* What comes from one member. */
struct ibshift_cast_source {
    uint32_t came;  /* all numbers before have */
    uint32_t seen;  /* none at or above has */
    uint32_t told;  /* acknowledged */
    uint64_t ahead; /* which of those from `came` on have */
    bool is_near;
};
static_assert(IBSHIFT_CAST_WINDOW <= 64, "a bit for each of the window");

/* A receive that is posted. */
struct ibshift_cast_awaited {
    uint32_t peer;
    struct ibshift_net_key key;
    uint64_t since, due, pause; /* when it asks, and again after twice as long */
    uint64_t asked;             /* the last time; 0: it has not */
};

/* A message that nobody has posted a receive for. */
struct ibshift_cast_held {
    uint32_t peer;
    struct ibshift_net_key key;
    uint32_t length;
    uint8_t *data;
};

struct ibshift_cast {
    struct ibshift_cast *next;
    struct ibshift_net_verbs *nv;
    struct ibshift_join join;
    uint64_t group; /* its secret, by which all members know it */
    uint32_t count, rank;
    size_t most, stride;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    struct ibv_mr *mr;
    struct ibshift_cast_place place;
    uint32_t inlined;
    uint8_t *memory; /* of receives, of the window, of what is held */
    struct ibshift_cast_buffer receives[IBSHIFT_CAST_RECEIVES], window;
    bool is_broken; /* the queue pair is in the error state */
    uint32_t tries; /* to make it ready again, in vain, in a row */
    bool is_closing;

    /* sending */
    uint32_t sent, left;    /* left: of the adapter */
    uint32_t *acknowledged; /* by rank */
    uint32_t acknowledged_by_all;
    uint32_t
        first; /* of the peers that are not near, the next after this rank: what it is sent is for all */

    /* receiving */
    struct ibshift_cast_source *sources;
    struct ibshift_cast_held held[IBSHIFT_CAST_HELD];
    uint32_t held_count;
    struct ibshift_cast_awaited *awaited;
    uint32_t awaited_count, awaited_room;
    uint64_t pause, pause_most; /* that receives wait before they ask */
    uint32_t peers[];
};

static inline uint8_t *ibshift_cast_slot(const struct ibshift_cast *cast, uint32_t number)
{
    return cast->window.data + number % IBSHIFT_CAST_WINDOW * cast->stride;
}

/* By its secret; NULL: this side has it no more. */
static inline struct ibshift_cast *ibshift_cast_find(const struct ibshift_net_verbs *nv,
                                                     uint64_t group)
{
    struct ibshift_cast *cast = nv->casts;

    while (cast != NULL && cast->group != group) {
        cast = cast->next;
    }
    return cast;
}

enum { IBSHIFT_CAST_BY_KEY = 1 }; /* in a request without a number: its length */

/* net/cast/out.c: whether all that lives has all. */
bool ibshift_cast_is_acknowledged(struct ibshift_cast *cast);

/* net/cast/in.c. ask(): for what is late; forgets what has come, returns when the next one is due. */
int ibshift_nv_cast_receive(struct ibshift_cast_buffer *buffer);
uint64_t ibshift_cast_ask(struct ibshift_cast *cast);
void ibshift_cast_acknowledge_all(struct ibshift_cast *cast);

/* net/cast/open.c */
int ibshift_cast_ready(struct ibshift_cast *cast);
void ibshift_cast_free(struct ibshift_cast *cast);

#endif
