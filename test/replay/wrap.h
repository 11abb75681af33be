#ifndef IBSHIFT_REPLAY_WRAP_H
#define IBSHIFT_REPLAY_WRAP_H

#include "scheduler.h"

/* The kernel that ranks see. */
extern const struct replay_kernel wrap_kernel;

#endif
