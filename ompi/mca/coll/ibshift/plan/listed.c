#include "plan/listed.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->listed->first[rank + 1] - plan->listed->first[rank];
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    *out = plan->listed->steps[plan->listed->first[rank] + round];
    return 1;
}

static uint32_t pieces(const struct ibshift_plan *plan)
{
    return plan->listed->pieces;
}

static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)
{
    return plan->listed->tmp_first[rank + 1] - plan->listed->tmp_first[rank];
}

static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    return plan->listed->tmp_piece[plan->listed->tmp_first[rank] + slot];
}

#define ROW(which, more)                                                                           \
    {                                                                                              \
        .collective = (which), .name = "file", .doc = "what coll_ibshift_plan has",                \
        .cost = "as the file says", .flags = (more), .rounds = rounds, .emit = emit,               \
        .pieces = pieces, .tmp = tmp, .tmp_block = tmp_block                                       \
    }

static const struct ibshift_alg rows[] = {
    ROW(IBSHIFT_ALLGATHER, 0),
    ROW(IBSHIFT_ALLTOALL, 0),
    ROW(IBSHIFT_ALLREDUCE, IBSHIFT_ALG_COMMUTATIVE_ONLY),
    ROW(IBSHIFT_REDUCE_SCATTER, IBSHIFT_ALG_COMMUTATIVE_ONLY),
};

const struct ibshift_alg *ibshift_listed_row(enum ibshift_collective collective)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].collective == collective) {
            return &rows[i];
        }
    }
    return NULL;
}

uint32_t ibshift_listed_line(const struct ibshift_listed *listed, const char *why)
{
    unsigned rank, round;

    return sscanf(why, "rank %u round %u", &rank, &round) == 2 && rank < listed->ranks &&
                   round < listed->first[rank + 1] - listed->first[rank]
               ? listed->line[listed->first[rank] + round]
               : 1;
}

void ibshift_listed_free(struct ibshift_listed *listed)
{
    free(listed->first);
    free(listed->steps);
    free(listed->line);
    free(listed->tmp_first);
    free(listed->tmp_piece);
    *listed = (struct ibshift_listed){.first = NULL};
}
