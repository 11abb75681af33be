/* What Open MPI's component tuned calls collectives and algorithms, by its numbers, and what does the same here. */
#ifndef IBSHIFT_CHOOSE_RULES_NAMES_H
#define IBSHIFT_CHOOSE_RULES_NAMES_H

#include <stdbool.h>

#include "plan/alg.h"

enum { IBSHIFT_RULES_COLLECTIVES = 17 };

struct ibshift_rules_collective {
    const char *name;
    enum ibshift_collective collective; /* IBSHIFT_COLLECTIVES: none here */
    bool is_vector;
};

struct ibshift_theirs {
    const char *name, *ours; /* "": none of ours */
    uint32_t radix;          /* that makes ours the same; 0: the fan-out of the rule */
};

extern const struct ibshift_rules_collective ibshift_rules_collectives[IBSHIFT_RULES_COLLECTIVES];
/* Each ends with a name of NULL. */
extern const struct ibshift_theirs *const ibshift_rules_algorithms[IBSHIFT_RULES_COLLECTIVES];

#endif
