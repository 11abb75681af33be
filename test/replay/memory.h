#ifndef IBSHIFT_REPLAY_MEMORY_H
#define IBSHIFT_REPLAY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Blocks that a rank has not freed, each said. */
int memory_leaks(int rank);
/* Whether anybody has written outside of what was given. */
void memory_check(void);
bool memory_is_of(int rank, const void *at, size_t size);

#endif
