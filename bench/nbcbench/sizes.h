/* Blocks that differ in length, as a matrix of fabric/matrix.h has them. Rank 0 alone reads it and has all of it. */
#ifndef NBCBENCH_SIZES_H
#define NBCBENCH_SIZES_H

#include "nbcbench.h"

bool sizes_vary(const struct options *o, const struct collective *c);

/* 0, or -EINVAL and why the matrix cannot be taken. */
int sizes_check(const char *text, int ranks, size_t bytes, char *why, size_t room);

/* What the calling rank sends each rank, and behind that what it gets from each; ends the program where the matrix cannot be
 * taken. All ranks call it; the longest block is that of any pair of ranks. */
uint64_t *sizes_take(const char *text, MPI_Comm comm, size_t bytes, size_t *longest);

#endif
