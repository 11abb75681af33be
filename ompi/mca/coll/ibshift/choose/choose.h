/*
 * The one way from a call to a plan: ibshift_choose(). The wish is what the user names, else what a rule says. Then comes what was
 * kept for the same question and wish, else the wish if it fits, else the cheapest of the candidates under the model. The component
 * runs what is found here, and `ibshift plan compare` prices the same candidates.
 */
#ifndef IBSHIFT_CHOOSE_CHOOSE_H
#define IBSHIFT_CHOOSE_CHOOSE_H

#include <stdatomic.h>

#include "choose/best.h"
#include "plan/nodes.h"

/*
 * A wish that cannot be fulfilled is as none. It is a pure function of the question: ranks that ask the same get the same, whether
 * they have asked before or not. A brief answer, with nothing but the best, is kept for all communicators of a process whose ranks
 * share hosts, ports and memory alike. For any thread.
 */
struct ibshift_answer ibshift_choose(const struct ibshift_question *question);

enum {
    IBSHIFT_CHOICE_KINDS = 32 /* which sizes ranks know (4), may grants stand (2), is the operator
                               commutative (2), does the program wait (2) */
};

/* The values of a collective's parameters: what is kept holds as long as they do. */
struct ibshift_named {
    int algorithm, radix;
    size_t segment;
};

struct ibshift_kept_choice {
    struct ibshift_choice choice;
    bool is_known;
    struct ibshift_named named;
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

/* The choices of one collective are made anew, in their old places. */
void ibshift_choices_reconsider(struct ibshift_choices *choices,
                                enum ibshift_collective collective);
/* The choices of one collective are made anew. */
void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective);

#endif
