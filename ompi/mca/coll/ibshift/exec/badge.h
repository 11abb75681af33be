/*
 * The badge, by which calls of different collectives are told apart: it goes above the communicator in
 * the first word of each key (net.h).
 *
 *     bits 0 to 3  collective   4, 5  variant   6 and up  a hash of what must be the same on all ranks
 */
#ifndef IBSHIFT_EXEC_BADGE_H
#define IBSHIFT_EXEC_BADGE_H

#include "plan/alg.h"

/* Blocks of one size, of a count for each, of a type for each too; reduce_scatter_block is EVEN. */
enum ibshift_badge_variant { IBSHIFT_BADGE_EVEN, IBSHIFT_BADGE_COUNTED, IBSHIFT_BADGE_TYPED };

/* In its place. operator: a number that all ranks know of the operator and its type; 0: none. Plans may
 * differ when counts do. */
uint32_t ibshift_badge(enum ibshift_badge_variant variant, uint64_t operator,
                       const struct ibshift_alg * alg, const struct ibshift_plan *plan,
                       uint32_t root);

/* MPI's name of the collective in the first word of a key. */
const char *ibshift_badge_name(uint32_t word, char *text, size_t size);
bool ibshift_badge_is_like(uint32_t a, uint32_t b); /* collective and variant */

#endif
