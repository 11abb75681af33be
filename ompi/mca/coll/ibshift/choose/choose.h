/*
 * The one way from a call to a plan: ibshift_choose(). What the user names is taken, else what a rule says, else what was kept,
 * else the cheapest of the candidates under the model. The component runs what is found here, and `ibshift plan compare` prices the
 * same candidates.
 */
#ifndef IBSHIFT_CHOOSE_CHOOSE_H
#define IBSHIFT_CHOOSE_CHOOSE_H

#include <stdatomic.h>

#include "choose/glance.h"
#include "choose/price.h"
#include "choose/size.h"
#include "plan/nodes.h"

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
    bool grants_anew;                  /* as in price.h */
    struct ibshift_wish wish;          /* the user's */
    const struct ibshift_rules *rules; /* NULL: there are none */
    struct ibshift_price_space *space; /* the search makes it */
    bool is_brief; /* nobody reads second and other, so no dear plan is priced to its end */
};

/* How the row's messages go in that question. */
struct ibshift_sending ibshift_choose_sending(const struct ibshift_question *question,
                                              const struct ibshift_alg *alg);

/* best: of those that cost at most IBSHIFT_PRICE_EQUAL times the cheapest, the simplest; second: the
 * cheapest of the others; other: the cheapest that goes by node where best does not, or does not
 * where best does. */
struct ibshift_answer {
    struct ibshift_choice best, second, other; /* alg NULL: there is none */
    struct ibshift_wish wish;                  /* the user's, or a rule's */
    int candidates;                            /* that were looked at */
};

/*
 * A wish that cannot be fulfilled is as none. It is a pure function of the question: ranks that ask the same get the same, whether
 * they have asked before or not. A brief answer, with nothing but the best, is kept for all communicators of a process whose ranks
 * share hosts, ports and memory alike. For any thread.
 */
struct ibshift_answer ibshift_choose(const struct ibshift_question *question);

/* The same without rules, and nothing is kept: the cheapest of the candidates, or what is wished. */
struct ibshift_answer ibshift_choose_best(const struct ibshift_question *question);

/* The cheapest plan of each row but one, that of `own`, of those that cost at most `times` as much as
 * it; the cheapest first. Returns how many of `most` there are. The question has no wish for a row. */
int ibshift_choose_rivals(const struct ibshift_question *question, const struct ibshift_choice *own,
                          double times, struct ibshift_choice *found, int most);

enum {
    IBSHIFT_CHOICE_KINDS =
        16 /* which sizes ranks know (4), may grants stand (2), is the operator commutative (2) */
};

/* The values of a collective's parameters: what is kept holds as long as they do. */
struct ibshift_named {
    int algorithm, radix;
    size_t segment;
};

struct ibshift_kept_choice {
    struct ibshift_choice choice;
    bool is_known, is_wished; /* by the user or a rule */
    struct ibshift_named named;
    double measured; /* us, as a trial took it in the mean of the ranks; 0: there was none */
};

/* All choices of a communicator, by kind and class of sizes, and what their prices depend on. */
struct ibshift_choices {
    struct ibshift_kept_choice *table[IBSHIFT_COLLECTIVES][IBSHIFT_CHOICE_KINDS];
    const struct ibshift_choice *_Atomic last[IBSHIFT_COLLECTIVES]; /* that ran; NULL: none has */
    const struct ibshift_model *model; /* NULL: nobody has looked at the crowd yet */
    const struct ibshift_model *near;  /* between ranks of a node; NULL: as model */
    bool is_measured;                  /* both are from `ibshift tune` */
    struct ibshift_crowd crowd;
    struct ibshift_nodes nodes; /* of ranks that share memory, or a host without any */
};

/* Where such a choice is kept; NULL: there is no memory. */
struct ibshift_kept_choice *ibshift_choices_at(struct ibshift_choices *choices,
                                               enum ibshift_collective collective, int kind,
                                               uint64_t bytes);
/* It was made, and by these parameters: MPI_T may change them. */
static inline bool ibshift_choice_holds(const struct ibshift_kept_choice *kept,
                                        const struct ibshift_named *named)
{
    return kept->is_known && kept->named.algorithm == named->algorithm &&
           kept->named.radix == named->radix && kept->named.segment == named->segment;
}

/* The choices of one collective are made anew. */
void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective);

#endif
