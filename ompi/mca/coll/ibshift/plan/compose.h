/* The functions of a row that is a composition: plan/composition.h says what that is. */
#ifndef IBSHIFT_PLAN_COMPOSE_H
#define IBSHIFT_PLAN_COMPOSE_H

#include "plan/composition.h"

/* The functions of a row, for one composition. */
uint32_t ibshift_compose_rounds(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan, uint32_t rank);
uint32_t ibshift_compose_emit(const struct ibshift_composition *composition,
                              const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                              struct ibshift_step *out);
uint32_t ibshift_compose_pieces(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan);
uint32_t ibshift_compose_tmp(const struct ibshift_composition *composition,
                             const struct ibshift_plan *plan, uint32_t rank);
uint32_t ibshift_compose_tmp_block(const struct ibshift_composition *composition,
                                   const struct ibshift_plan *plan, uint32_t rank, uint32_t slot);

/* More than any tag of a composed plan, whatever its phases. */
uint64_t ibshift_compose_tags(const struct ibshift_plan *plan);

/* Defines rounds, emit, tmp and tmp_block of the composition of blocks of that name. */
#define IBSHIFT_COMPOSED_BLOCKS(composition)                                                       \
    static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)                         \
    {                                                                                              \
        return ibshift_compose_rounds(&(composition), plan, rank);                                 \
    }                                                                                              \
    static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,           \
                         struct ibshift_step *out)                                                 \
    {                                                                                              \
        return ibshift_compose_emit(&(composition), plan, rank, round, out);                       \
    }                                                                                              \
    static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)                            \
    {                                                                                              \
        return ibshift_compose_tmp(&(composition), plan, rank);                                    \
    }                                                                                              \
    static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)       \
    {                                                                                              \
        return ibshift_compose_tmp_block(&(composition), plan, rank, slot);                        \
    }

/* Of a vector: pieces as well. */
#define IBSHIFT_COMPOSED(composition)                                                              \
    IBSHIFT_COMPOSED_BLOCKS(composition)                                                           \
    static uint32_t pieces(const struct ibshift_plan *plan)                                        \
    {                                                                                              \
        return ibshift_compose_pieces(&(composition), plan);                                       \
    }

#endif
