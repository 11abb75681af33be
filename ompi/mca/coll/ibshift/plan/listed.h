/*
 * A plan whose steps somebody else wrote, and which a table holds: a step a round, so a step's need and drain name single ones. Its
 * row is in no table of algorithms. Who has not proved it (proof/check.h) must not run it.
 */
#ifndef IBSHIFT_PLAN_LISTED_H
#define IBSHIFT_PLAN_LISTED_H

#include "plan/alg.h"

struct ibshift_listed {
    enum ibshift_collective collective;
    uint32_t ranks, pieces; /* pieces: of a vector */
    uint64_t bytes[2];      /* of vector or all blocks: at least, at most; at most 0: no bound */
    uint32_t *first;        /* by rank, and one more: of its steps */
    struct ibshift_step *steps;
    uint32_t *line;      /* of a step in the file */
    uint32_t *tmp_first; /* by rank, and one more: of its slots of TMP */
    uint32_t *tmp_piece; /* of a slot: the piece whose size it has */
};

/* NULL: there is none for that collective. Plans of the row have plan->listed. */
const struct ibshift_alg *ibshift_listed_row(enum ibshift_collective collective);

/* Where in the file the step is that begins what the checker says: "rank 3 round 2 ...". 1: it names none. */
uint32_t ibshift_listed_line(const struct ibshift_listed *listed, const char *why);

void ibshift_listed_free(struct ibshift_listed *listed);

#endif
