/*
 * A priced run (choose/price.h): walk.c lets ranks act, one after the other, and transfer.c moves their messages, from their sending
 * to their receive, with grants and acknowledgements.
 */
#ifndef IBSHIFT_CHOOSE_PRICE_RUN_H
#define IBSHIFT_CHOOSE_PRICE_RUN_H

#include "choose/price.h"
#include "choose/size.h"
#include "plan/nodes.h"
#include "plan/walks.h"

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
    uint32_t hops;         /* of the chain that ends with it */
    bool is_grant;
    bool is_cast; /* a datagram to all, which the adapter has from a copy at once */
    bool is_copy; /* of one that has left for another rank, too */
    bool stands;  /* the grant of an earlier call: it was there before this one began */
    int32_t next;
};

struct ibshift_price_messages {
    struct ibshift_price_message *all; /* for free() */
    int32_t count, capacity, unused;
};

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
    uint32_t sequence; /* in which they were pushed */
    uint32_t rank;
    int32_t item; /* the caller's */
};

struct ibshift_heap {
    struct ibshift_event *events;
    size_t count, capacity;
    uint32_t sequence;
};

/* What pricing needs memory for. */
struct ibshift_price_space {
    struct ibshift_walks walks;
    struct ibshift_heap heap;
    struct ibshift_price_messages messages;
    void *ranks; /* what is kept of each rank */
    size_t ranks_size;
    uint32_t seen; /* rounds, for what links add */
};

/* Messages in a row (walk.c): those that are still to come, of how many. All zero at first. */
struct ibshift_burst {
    uint32_t left, length;
};

struct ibshift_price_posted {
    uint32_t from, key, round, index;
};

/* A send until its acknowledgement is back. */
struct ibshift_price_unacked {
    double done;
    uint32_t round;
};

struct ibshift_price_rank {
    struct ibshift_burst sends, recvs;
    double clock, wake;
    bool is_asleep; /* a wake-up is on its way */
    bool was_busy;
    double finish;
    int32_t arrived; /* has a receive; by ready */
    int32_t early;   /* has none yet; in order of arrival */
    int32_t asked;   /* sends that wait for their grant */
    int32_t grants;  /* that wait for their send */
    uint32_t posted_count, unacked_first, unacked_count;
    uint32_t hops;     /* of the longest chain that has come */
    uint32_t cast_key; /* 1 + the key of the last datagram to all; 0: none yet */
    double cast_leaves;
    uint64_t sent;
};

struct ibshift_price_run {
    const struct ibshift_price_request *request;
    struct ibshift_model model;
    struct ibshift_sizes sizes;
    uint32_t window;
    struct ibshift_walks *walks;
    const struct ibshift_alg *alg; /* the request's */
    const struct ibshift_plan *plan;
    uint32_t slots; /* entries of posted and unacked a rank: what a rank can use */
    struct ibshift_heap heap;
    struct ibshift_price_rank *nodes;
    struct ibshift_load *loads;            /* by rank, as nodes */
    struct ibshift_price_posted *posted;   /* slots a rank */
    struct ibshift_price_unacked *unacked; /* slots a rank, used as a ring */
    struct ibshift_price_messages messages;
    uint64_t message_total, post_total, byte_total;
    double most;    /* us, or infinity */
    bool has_begun; /* until then nobody sends, and grants that stand are put where sends look */
    struct ibshift_price_space *space;
    int error;
};

static inline bool ibshift_price_is_near(const struct ibshift_price_run *sim, uint32_t a,
                                         uint32_t b)
{
    const struct ibshift_plan *plan = sim->request->plan;

    return sim->request->near != NULL && ibshift_nodes_of(plan, a) == ibshift_nodes_of(plan, b);
}

/* What messages between the two cost. */
static inline const struct ibshift_model *
ibshift_price_model_between(const struct ibshift_price_run *sim, uint32_t a, uint32_t b)
{
    return ibshift_price_is_near(sim, a, b) ? sim->request->near : &sim->model;
}

static inline struct ibshift_price_unacked *
ibshift_price_unacked_at(const struct ibshift_price_run *sim, uint32_t rank, uint32_t place)
{
    return &sim->unacked[(size_t)rank * sim->slots +
                         (sim->nodes[rank].unacked_first + place) % sim->slots];
}

static inline double ibshift_price_later(double a, double b)
{
    return a > b ? a : b;
}

/* The rank is to be looked at again at that time: by itself (item: IBSHIFT_NO_MESSAGE), or for that message. */
void ibshift_price_push(struct ibshift_price_run *sim, double time, uint32_t rank, int32_t item);

/* The first event; there is one. */
struct ibshift_event ibshift_price_pop(struct ibshift_heap *heap);

/* The rank's processor is busy for so long. */
void ibshift_price_work(struct ibshift_price_run *sim, uint32_t rank, double begin, double time);

/* Tells who looks on of a send, or a receive, of the rank: event has its times. */
void ibshift_price_report(const struct ibshift_price_run *sim, uint32_t rank,
                          const struct ibshift_price_message *message,
                          struct ibshift_price_event event);

/* Acknowledgements that are back by then. */
void ibshift_price_acknowledge(struct ibshift_price_run *sim, uint32_t rank, double now);

/* From begin on, as soon as its grant is there. */
void ibshift_price_send(struct ibshift_price_run *sim, const struct ibshift_price_message *message);

/* Every receive that the rank may post now. */
void ibshift_price_post(struct ibshift_price_run *sim, uint32_t rank);

/* A message is at the rank's port: finds its receive (true), or waits for it. */
bool ibshift_price_arrive(struct ibshift_price_run *sim, uint32_t rank, double now, int32_t index);

/* A grant is at its rank, whose send may leave now if it is there. */
void ibshift_price_arrive_grant(struct ibshift_price_run *sim, uint32_t rank, double now,
                                int32_t index);

#endif
