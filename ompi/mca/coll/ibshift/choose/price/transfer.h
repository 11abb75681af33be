/* Of a priced run (choose/price.h): the messages between its ranks, from their sending to their receive, with grants and
 * acknowledgements. All functions are of the rank in run->walk, whose number is given, or of one that a message is for. */
#ifndef IBSHIFT_CHOOSE_PRICE_TRANSFER_H
#define IBSHIFT_CHOOSE_PRICE_TRANSFER_H

#include "choose/price.h"
#include "choose/price/burst.h"
#include "choose/price/space.h"
#include "choose/size.h"
#include "plan/nodes.h"

struct ibshift_price_posted {
    uint32_t from, key, round, index, flight;
};

/* A send until its acknowledgement is back. */
struct ibshift_price_unacked {
    double done;
    uint32_t round, flight;
};

struct ibshift_price_rank {
    struct ibshift_walk_mark mark;
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
    uint32_t hops; /* of the longest chain that has come */
    uint64_t sent;
};

struct ibshift_price_run {
    const struct ibshift_price_request *request;
    struct ibshift_model model;
    struct ibshift_sizes sizes;
    uint32_t window;
    struct ibshift_walk *walk;     /* of the rank that acts */
    const struct ibshift_alg *alg; /* the request's, whose rounds may be kept */
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
