/* Which plan does a job best: the candidates, and the cheapest of them under the model. */
#ifndef IBSHIFT_CHOOSE_BEST_H
#define IBSHIFT_CHOOSE_BEST_H

#include "choose/glance.h"
#include "choose/price.h"
#include "choose/size.h"

struct ibshift_rules;

enum { IBSHIFT_CANDIDATES_MAX = 64 /* of one row */ };

/* What somebody asks for; it is taken without a price. */
struct ibshift_wish {
    const struct ibshift_alg *alg; /* NULL: the cheapest that does the job */
    uint32_t radix;                /* 0: the cheapest */
    uint64_t segment;              /* bytes; 0: the cheapest */
};

struct ibshift_choice {
    const struct ibshift_alg *alg; /* NULL: none fits */
    uint32_t radix, segments, leaders;
    uint64_t
        most; /* bytes of a block that goes so, of a v-variant whose sizes are told (exec/mixed.h); others go flat */
    struct ibshift_price price; /* last: negative: not known */
};

static inline void ibshift_choice_take(const struct ibshift_choice *choice,
                                       struct ibshift_plan *plan)
{
    plan->radix = choice->radix;
    plan->segments = choice->segments;
    plan->leaders = choice->leaders;
}

/* The plans of the row that are worth a price among so many ranks, the simplest first. found has
 * room for IBSHIFT_CANDIDATES_MAX; returns how many there are. Some may not pass
 * ibshift_alg_check(); none has a price yet. */
int ibshift_candidates(const struct ibshift_alg *alg, uint32_t ranks, uint64_t bytes,
                       const struct ibshift_wish *wish, struct ibshift_choice *found);

/* needs: the row must have one of these flags; 0: any row of the collective will do. */
static inline bool ibshift_alg_serves(const struct ibshift_alg *alg,
                                      enum ibshift_collective collective, uint32_t needs)
{
    return alg->collective == collective && (needs == 0 || (alg->flags & needs) != 0);
}

/* Its ranks may be named by their places along the fabric: nothing of it depends on what lies beside what. */
static inline bool ibshift_alg_may_rename(const struct ibshift_alg *alg)
{
    return (alg->flags & IBSHIFT_ALG_NODES) == 0 &&
           (alg->collective != IBSHIFT_ALLGATHER || (alg->flags & IBSHIFT_ALG_SINGLE) != 0);
}

/* Where ranks are on a fabric whose routes are known. */
struct ibshift_distance {
    const struct ibshift_paths *paths;
    const uint32_t *member_of; /* by rank */
    const uint32_t *renamed;   /* of rows whose ranks are named anew; NULL: as member_of */
    uint64_t digest;
};

/* How long messages of a row go: so many at once, in pieces of so many bytes. Zeros: as any row, and whole. */
struct ibshift_sending {
    uint32_t window, piece;
};

struct ibshift_question {
    enum ibshift_collective collective;
    uint32_t needs;
    const struct ibshift_plan *plan; /* all but radix and segments */
    uint64_t bytes;
    uint32_t window;
    struct ibshift_sending free; /* of rows whose steps wait for none (IBSHIFT_ALG_FREE) */
    const struct ibshift_model *model;
    const struct ibshift_model *near;  /* between ranks of the plan's nodes; NULL: as model */
    const struct ibshift_crowd *crowd; /* NULL: each rank has a processor and a port */
    struct ibshift_distance distance;  /* paths NULL: no link is shared, as far as is known */
    bool grants_anew;                  /* as in price.h */
    uint64_t
        leader_memory; /* bytes that a leader of an all-to-all or a v-variant may hold; 0: 32 MiB */
    struct ibshift_wish wish;          /* the user's, or a rule's */
    const struct ibshift_rules *rules; /* NULL: there are none */
    struct ibshift_price_space *space; /* the search makes it */
    bool is_unattended;                /* who calls looks at it now and then at most */
    bool is_brief;      /* nobody reads second and other, so no dear plan is priced to its end */
    bool *lacks_memory; /* set where a plan could not be priced for want of it; may be NULL */
};

enum {
    IBSHIFT_CAST_PIECES = 8, /* datagrams of a vector, at most */
    IBSHIFT_CAST_SENDERS =
        64, /* each with two datagrams under way: more find no receive posted (net/cast/) */
};

/* How many datagrams a message of such a row may be. */
static inline uint32_t ibshift_cast_pieces(const struct ibshift_alg *alg)
{
    return (alg->flags & IBSHIFT_ALG_SEGMENTS) != 0 ? IBSHIFT_CAST_PIECES : 1;
}

/* Of a row by multicast, in as many segments as there have to be; 0: there is no group, the vector is too long, or
 * too many send. */
static inline uint32_t ibshift_cast_segments(const struct ibshift_alg *alg,
                                             const struct ibshift_plan *plan, uint64_t bytes)
{
    return plan->multicast == 0 || bytes > (uint64_t)ibshift_cast_pieces(alg) * plan->multicast ||
                   (alg->collective == IBSHIFT_ALLGATHER && plan->ranks > IBSHIFT_CAST_SENDERS)
               ? 0
           : bytes == 0 ? 1
                        : (uint32_t)((bytes - 1) / plan->multicast + 1);
}

static inline bool ibshift_may_cast(const struct ibshift_question *question,
                                    const struct ibshift_alg *alg)
{
    return (alg->flags & IBSHIFT_ALG_MULTICAST) == 0 ||
           ibshift_cast_segments(alg, question->plan, question->bytes) > 0;
}

/* How the row's messages go in that question. */
struct ibshift_sending ibshift_choose_sending(const struct ibshift_question *question,
                                              const struct ibshift_alg *alg);

/* best: of those that cost at most IBSHIFT_PRICE_EQUAL times the cheapest, the simplest; unattended, in longer segments; second: the
 * cheapest of the others; other: the cheapest that goes by node where best does not, or does not
 * where best does. */
struct ibshift_answer {
    struct ibshift_choice best, second, other; /* alg NULL: there is none */
    struct ibshift_wish wish;                  /* the user's, or a rule's */
    int candidates;                            /* that were looked at */
};

/* The cheapest of the candidates; or what is wished, where that can be. Rules are not looked at. */
struct ibshift_answer ibshift_choose_best(const struct ibshift_question *question);

#endif
