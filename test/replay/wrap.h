#ifndef IBSHIFT_REPLAY_WRAP_H
#define IBSHIFT_REPLAY_WRAP_H

#include "scheduler.h"

/* The kernel that ranks see. */
extern const struct replay_kernel wrap_kernel;

/* Of memory.c: blocks that a rank has not freed, each said. */
int memory_leaks(int rank);
/* Whether anybody has written outside of what was given. */
void memory_check(void);

#endif
