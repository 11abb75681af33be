/*
 * The time of a plan under LogGP and LogfP: all ranks walk it in virtual time with the executor's
 * readiness rule and window (plan/walk.h).
 *
 * A rank is one processor and one port, each way.
 * - A send occupies the processor for o_s(n), n being the length of its burst (choose/price/walk.c). It
 *   starts when f messages or fewer have gone out for less than g ago each (a message of s bytes
 *   counts as g + (s - 1) G); then its bytes leave one after another, (s - 1) G.
 * - The wire takes L, without contention. The send is complete when an acknowledgement is back, L
 *   later.
 * - Of a receive, the port takes messages in by the same g, G and f, in order of arrival; then the
 *   processor is occupied for o_r(n).
 * - Copies and reductions occupy the processor, per byte.
 * - With S, a message of up to S bytes is copied: its send is complete when it has left the
 *   processor. A longer one is posted, for o_s(n), and leaves when its receiver's grant is there, which
 *   is sent when the receive is posted; its send is complete when the acknowledgement of its end is back (LogGPS). The
 *   grants that stand between blocking calls (net/verbs/long.c) are there from the beginning.
 *
 * - With R, a message that has its grant costs the sender's processor R more.
 * - In pieces, a message that has its grant goes piece after piece, each posted when the one before is acknowledged: each but
 * the first costs the sender's processor a post, o_s of a long row, and the message lasts at least their round trips.
 * - Between ranks of a node that share memory, parameters of their own hold, and no port is used.
 * - With O, the sender's processor moves the bytes, when the message may leave: o_s(n) + s O.
 * - With E, both sides copy a message of up to S bytes: s E more on either processor.
 * - n ranks that share the c processors of a host, and are more, need their work / c + path (1 - 1 /
 * c) (Graham, Brent): what they spend of processors, all together, and the time that they would
 * need with one each; and for each message of the longest chain w (n / c - 1) until the rank that
 * waits for it has its turn. A grant that is waited for counts as one. Ranks that share a port need at least what it takes to let all out, or in.
 *
 * Where the fabric's routes are known, what shared links add comes on top (choose/price/distance.c).
 *
 * Of what a processor could do it does sends first, as the executor does, then local steps, then
 * receives. Ranks enter together. With f = 1 and constant overheads this is LogGP, with G = 0 LogfP. The result is a
 * model's.
 */
#ifndef IBSHIFT_CHOOSE_PRICE_H
#define IBSHIFT_CHOOSE_PRICE_H

#include "plan/alg.h"
#include "choose/crowd.h"
#include "choose/param.h"
#include "choose/size.h"

/* What a rank did, in order of its own time: for drawings and tests. */
struct ibshift_price_event {
    uint32_t rank, round;
    const struct ibshift_step *step;
    double begin, end; /* the processor's part */
    double leaves;     /* a send: its first byte goes */
    double ready;      /* a receive: its last byte is there */
    uint64_t bytes;
};

struct ibshift_price_request {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan; /* has passed ibshift_alg_check() */
    const struct ibshift_model *model;
    const struct ibshift_model *near; /* between ranks of one of the plan's nodes; NULL: as model */
    uint64_t bytes;                   /* as in choose/size.h */
    uint32_t element;                 /* bytes of an element; 0 is 1 */
    uint32_t window;                  /* 0: the largest */
    uint32_t piece; /* bytes; messages that need a grant, of other nodes, go in such; 0: whole */
    uint32_t peers; /* whose pieces share a port's time, up to the window; 0: all other ranks */
    const struct ibshift_crowd *crowd; /* NULL: each rank has a processor and a port */
    bool grants_anew; /* no grant stands: the call is not blocking, or has counts */
    uint64_t limit;   /* refuse to look at more messages than that; 0: 2^32 */
    struct ibshift_price_space *space; /* NULL: of its own */
    double most;                       /* us: give up when it takes longer; 0: never */
    void (*seen)(void *context, const struct ibshift_price_event *event); /* may be NULL */
    void *context;
};

struct ibshift_price {
    double last; /* us until the last rank has done its last step */
    enum ibshift_price_of of;
    double first; /* ... until the first rank has, of those that have any */
    uint64_t messages;
    uint64_t bytes; /* sum of all messages */
    uint64_t most;  /* messages sent by the rank that sends most */
    uint64_t posts; /* messages, or the pieces of those that go in such */
    uint32_t hops;  /* messages of the longest chain in which each waits for the one before */
};

/*
 * Of two plans whose prices are as good as equal, whether a is the better one: less that can be late, hops
 * and what the busiest rank sends, or of as much fewer hops; then fewer messages, then the lower price.
 * Where ranks share processors hops are in the price, and fewer messages take fewer turns from others.
 */
static inline bool ibshift_price_is_simpler(const struct ibshift_price *a,
                                            const struct ibshift_price *b)
{
    bool is_shared = a->of == IBSHIFT_PRICE_PROCESSORS && b->of == IBSHIFT_PRICE_PROCESSORS;
    uint64_t late_a = a->hops + a->most, late_b = b->hops + b->most;

    if (!(is_shared && a->messages != b->messages) && (late_a != late_b || a->hops != b->hops)) {
        return late_a != late_b ? late_a < late_b : a->hops < b->hops;
    }
    return a->messages != b->messages ? a->messages < b->messages : a->last < b->last;
}

/* No model tells prices apart that are nearer than that. */
#define IBSHIFT_PRICE_EQUAL 1.02

/* 0, -ENOMEM, -E2BIG beyond the limit, -ERANGE as soon as it is known to take longer than `most`, or -EDEADLK when the plans do not fit together. */
int ibshift_price(const struct ibshift_price_request *request, struct ibshift_price *price);

/* Adds to the price of the request, a plan by node for blocks whose sizes are told first (exec/mixed.h), what telling them costs. */
int ibshift_price_telling(const struct ibshift_price_request *main, struct ibshift_price *price);

/*
 * Adds what links between hosts take longer than the hosts' own cables, stage by stage, as `fabric contend` counts flows. Of more than
 * 16,384 rounds of all ranks some are looked at, and fewer the more its space has seen. member_of: by rank, of the paths. 0 or -ENOMEM.
 */
struct ibshift_paths;
int ibshift_price_distance(const struct ibshift_price_request *request,
                           const struct ibshift_paths *paths, const uint32_t *member_of,
                           struct ibshift_price *price);

/* One message: whether it stays in a node; us of the processor of a rank that sends or takes it there; us from its posting until it
 * has come, without those beside it. */
bool ibshift_hop_is_near(const struct ibshift_price_request *request, uint32_t a, uint32_t b);
double ibshift_hop_work(const struct ibshift_model *near, int kind, double bytes);
double ibshift_hop(const struct ibshift_price_request *request, bool is_near, double bytes);

/* us that a chain of messages takes at least that ends with the rank's last receive, back as far as some rounds show; and a rank of
 * a tree that is far from its root: to a base of a power of two, all digits of its number are the highest. */
double ibshift_chain(const struct ibshift_price_request *request, const struct ibshift_sizes *sizes,
                     uint32_t rank);
uint32_t ibshift_chain_end(const struct ibshift_plan *plan);

/* What pricing needs memory for: who prices many plans one after the other gives the same to all of them. */
struct ibshift_price_space *ibshift_price_space_new(void); /* NULL: there is no memory */
void ibshift_price_space_free(struct ibshift_price_space *space);

#endif
