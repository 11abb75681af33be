#ifndef IBSHIFT_COLL_CHOOSE_H
#define IBSHIFT_COLL_CHOOSE_H

/*
 * Which algorithm runs. The cost model prices every row that can do the job, with a few radices and
 * segment sizes, and the cheapest one wins; a row, radix or segment that a parameter names is taken
 * without asking. What was found is kept by the communicator, for each collective and class of
 * sizes. It depends on what all ranks know alike, and on the same parameters everywhere.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/alg.h"
#include "choose/price.h"

/* What the parameters of a collective ask for; MPI_T may change them between two calls. */
struct ibshift_wish {
    int algorithm, radix;
    size_t segment;
};

struct ibshift_choice {
    const struct ibshift_alg *alg; /* NULL: none fits */
    uint32_t radix;
    uint32_t segments;
    double price; /* us; negative: not known */
    enum ibshift_price_of of;
    bool is_known;
    struct ibshift_wish wish; /* under which it was made */
};

enum {
    IBSHIFT_SIZE_CLASSES = 48, /* class c: sizes up to 2^c bytes and above the class before */
    IBSHIFT_CHOICE_KINDS = 6   /* which sizes ranks know (3), is the operator commutative (2) */
};

/* All choices of a communicator. */
struct ibshift_choices {
    struct ibshift_choice *table[IBSHIFT_COLLECTIVES][IBSHIFT_CHOICE_KINDS];
    const struct ibshift_choice *_Atomic last[IBSHIFT_COLLECTIVES]; /* that ran; NULL: none has */
};

void ibshift_choices_free(struct ibshift_choices *choices);
const struct ibshift_choice *ibshift_choices_last(const struct ibshift_choices *choices,
                                                  enum ibshift_collective collective);
/* Those of one collective: they are made anew. */
void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective);

/* Reads the model's parameters; a file that is wrong is reported, and the typical values stay: of
 * hardware, or of devices in software. */
void ibshift_choose_open(void);
uint64_t ibshift_choose_digest(void); /* of the models in use, all of their fields */
const struct ibshift_model *ibshift_choose_model(void);

#endif
