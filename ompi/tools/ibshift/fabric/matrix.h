/*
 * Matrices of an all-to-all with counts: how many bytes each rank has for each other. From a file of lines "FROM TO BYTES", where
 * '#' begins a comment, lines of one pair add up and pairs that are not named have nothing; or made, of blocks of `bytes`, which is the longest one of spread
 * and builder and the mean of the others:
 *
 *     uniform              all alike
 *     random:SEED          from 0 to twice the mean
 *     spread:RATIO:SEED    down to bytes / RATIO, evenly by the logarithm
 *     builder:RATIO:SEED   the same, from the first half of the ranks to the second, and nothing else
 *     topk:K:SEED          each rank deals what it has to K others only, as tokens go to experts
 *     hot:PERCENT:SEED     as random, but one rank gets PERCENT of what a rank gets in the mean
 *     giant:FACTOR:SEED    all alike, but one block is FACTOR times as long
 *     sparse:K:SEED        K permutations: every rank sends as much as it gets
 */
#ifndef IBSHIFT_FABRIC_MATRIX_H
#define IBSHIFT_FABRIC_MATRIX_H

#include <stdint.h>
#include <stdio.h>

#include "fabric/graph/fabric.h"

/* Of an option's help. */
#define MATRIX_HELP                                                                                \
    "FILE, uniform, random:SEED, spread:RATIO:SEED, builder:RATIO:SEED, topk:K:SEED, "             \
    "hot:PERCENT:SEED, giant:FACTOR:SEED or sparse:K:SEED"

enum { MATRIX_MOST = 1000000000 /* bytes of a block */ };

/* into[from * ranks + to], of zeros. 0, or -EINVAL with the reason. */
int matrix_fill(uint64_t *into, uint32_t ranks, const char *text, uint64_t bytes,
                struct ibshift_error *err);
/* 0, or -EINVAL: nobody has anything for another rank. */
int matrix_check(const uint64_t *bytes, uint32_t ranks, const char *text,
                 struct ibshift_error *err);
/* Of one of the words, not read from a file. */
bool matrix_is_made(const char *text);
int matrix_read(uint64_t *into, uint32_t ranks, FILE *file, const char *name,
                struct ibshift_error *err);

#endif
