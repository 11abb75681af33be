/* How many messages a rank posts (or takes in) in a row: the n of o_s(n) and o_r(n).
 *
 * Messages in a row belong together when they are of one round as the literature draws it (one tag)
 * or of one size, and nothing that the rank does between them waits for more receives than the
 * first did. So the sends of a linear scatter or of a modified ring are one burst, those of a tree
 * one burst a round, and those of a ring are alone. It is a property of the plan, not of the
 * timing. */
#ifndef IBSHIFT_CHOOSE_BURST_H
#define IBSHIFT_CHOOSE_BURST_H

#include "plan/alg.h"

/* The length of the burst that begins with the given step of the round, a send or a receive: its kind; at least 1. */
uint32_t ibshift_burst_length(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                              int kind, uint32_t rank, uint32_t round, uint32_t index);

#endif
