/* The split of a scatter (or gather) that LogGP calls optimal, for the algorithms named split.
 *
 * A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman: LogGP, J. Parallel Distrib. Comput. 44,
 * 1997: of m blocks the holder hands out n, so that both halves end together: t(1) = 0, t(m) = min
 * over 0 < n < m of n s G + max(o_s + L + o_r + t(n), g + t(m - n)) (s instead of s - 1 bytes a
 * block, which is what n blocks in one message add). */
#ifndef IBSHIFT_PROOF_SPLIT_H
#define IBSHIFT_PROOF_SPLIT_H

#include <stdint.h>

#include "choose/param.h"

/* Fills split[2..ranks] (ranks + 1 entries): how many blocks of m go first. 0 or -ENOMEM; O(ranks
 * log ranks). */
int ibshift_model_split(const struct ibshift_model *model, uint64_t bytes, uint32_t ranks,
                        uint32_t *split);

#endif
