/* The state of one simulated rank and the queues of messages between ranks; private to model/. */
#ifndef IBSHIFT_CHOOSE_PRICE_NODE_H
#define IBSHIFT_CHOOSE_PRICE_NODE_H

#include "choose/heap.h"
#include "choose/price.h"
#include "choose/size.h"
#include "plan/walk.h"

#define IBSHIFT_NO_MESSAGE (-1)

/* From its sending to its processing; or the grant of one, which has no bytes. */
struct ibshift_price_message {
    double ready;      /* the last byte is there */
    double begin, end; /* of the sender's processor's part */
    uint64_t bytes;
    uint32_t from, to, key;
    uint32_t round, index; /* the send's; the receive's, once it is known */
    uint32_t flight;       /* of its rank's walk, while that is the one in sim->walk */
    bool is_grant;
    int32_t next;
};

struct ibshift_posted {
    uint32_t from, key, round, index, flight;
};

/* A send until its acknowledgement is back. */
struct ibshift_unacked {
    double done;
    uint32_t round, flight;
};

/* A port in one direction: when it is free for the next message (a virtual clock of g) and byte. */
struct ibshift_port {
    double turn, wire;
    double gaps, bytes; /* us that all its messages take it: their gaps, their bytes */
};

struct ibshift_burst {
    uint32_t left;
    double overhead;
};

struct ibshift_node {
    struct ibshift_walk_mark mark;
    struct ibshift_port out, in;
    struct ibshift_burst sends, recvs;
    double clock, wake;
    double worked;  /* us of its processor */
    bool is_asleep; /* a wake-up is on its way */
    bool was_busy;
    double finish;
    int32_t arrived; /* has a receive; by ready */
    int32_t early;   /* has none yet; in order of arrival */
    int32_t asked;   /* sends that wait for their grant */
    int32_t grants;  /* that wait for their send */
    uint32_t posted_count, unacked_first, unacked_count;
    uint64_t sent;
};

struct ibshift_simulation {
    const struct ibshift_price_request *request;
    struct ibshift_model model;
    struct ibshift_sizes sizes;
    uint32_t window;
    struct ibshift_walk walk; /* of the rank that acts */
    struct ibshift_pages pages;
    uint32_t slots; /* entries of posted and unacked a rank: what a rank can use */
    struct ibshift_heap heap;
    struct ibshift_node *nodes;
    struct ibshift_posted *posted;   /* slots a rank */
    struct ibshift_unacked *unacked; /* slots a rank, used as a ring */
    struct ibshift_price_message *messages;
    int32_t message_count, message_capacity, message_free;
    uint64_t message_total, byte_total;
    int error;
};

int ibshift_messages_take(struct ibshift_simulation *sim, int32_t *index);
void ibshift_messages_give(struct ibshift_simulation *sim, int32_t index);

/* Posts every receive that the rank in sim->walk may post now; messages that were early find
 * theirs. */
void ibshift_node_post(struct ibshift_simulation *sim, uint32_t rank);

/* A message is at the rank's port: finds its receive (true), or waits for it. */
bool ibshift_node_arrive(struct ibshift_simulation *sim, uint32_t rank, double now, int32_t index);

/* Starts the rank, or lets it go on: it does all that it can do without hearing from others. */
void ibshift_node_begin(struct ibshift_simulation *sim, uint32_t rank);
void ibshift_node_resume(struct ibshift_simulation *sim, uint32_t rank);
void ibshift_node_advance(struct ibshift_simulation *sim, uint32_t rank);

/* The bytes of a send leave at `begin` or when the port lets them, but not before `earliest`. */
void ibshift_node_leave(struct ibshift_simulation *sim, int32_t index, double begin,
                        double earliest);

/* When the acknowledgement of a long send will be back is known once it has arrived. */
void ibshift_node_acknowledged(struct ibshift_simulation *sim, uint32_t rank, uint32_t round,
                               double done);

static inline bool ibshift_needs_grant(const struct ibshift_simulation *sim, uint64_t bytes)
{
    return sim->model.at_once > 0 && (double)bytes > sim->model.at_once;
}

/* The rank posts the receive of a long message. */
void ibshift_grant_send(struct ibshift_simulation *sim, uint32_t rank,
                        const struct ibshift_step *step);

/* A grant is at its rank, whose send may leave now if it is there. */
void ibshift_grant_arrive(struct ibshift_simulation *sim, uint32_t rank, double now, int32_t index);

/* A long send: true when its grant is there, else it waits for that. */
bool ibshift_grant_ask(struct ibshift_simulation *sim, uint32_t rank, int32_t index);

/* Acknowledgements that are back by then, for the rank in sim->walk. */
void ibshift_node_acknowledge(struct ibshift_simulation *sim, uint32_t rank, double now);

/* When a port takes a message that comes at `now`; *end is when its last byte is through. */
double ibshift_port_take(const struct ibshift_simulation *sim, struct ibshift_port *port,
                         double now, uint64_t bytes, double *end);

/* What shared processors and ports take at the least, if that is longer than the price so far. 0 or
 * -ENOMEM. */
int ibshift_price_share(const struct ibshift_simulation *sim, struct ibshift_price *price);

#endif
