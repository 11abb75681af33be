#ifndef IBSHIFT_COLL_DEATH_H
#define IBSHIFT_COLL_DEATH_H

#include <stdint.h>

/*
 * Processes that have ended. A connection notices by itself when its other end is gone; this is for
 * a peer that there is no connection with yet. Only processes under the same kernel can be looked
 * at.
 */

/* Which process it is: its number, in its space of numbers; 0: not known. */
struct ibshift_process {
    uint64_t space;
    uint64_t started; /* tells it from a later one of the same number */
    uint64_t pid;
};

struct ibshift_process ibshift_process_self(void);

/* How it is known that the peer's process has ended, or NULL. Fits net_verbs.h. */
const char *ibshift_process_has_ended(void *context, uint32_t peer);

#endif
