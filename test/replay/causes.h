#ifndef IBSHIFT_REPLAY_CAUSES_H
#define IBSHIFT_REPLAY_CAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "program.h"

/* What was done to a rank that can be why an operation fails. Faults that the product must bear are none of these. */
enum cause {
    CAUSE_DEAD,    /* it was killed, or has given up for want of memory */
    CAUSE_LATE,    /* it was stopped for longer than others are patient */
    CAUSE_MEMORY,  /* an allocation was refused */
    CAUSE_LINK,    /* its host's port went down and stayed so, or its device died */
    CAUSE_HOSTILE, /* what it sends is garbage */
    CAUSE_BUSY,    /* it moved messages all the time while one was waiting for it */
    CAUSE_SPOILT, /* a hostile one of its host has written to its shared memory, whoever should write there */
    CAUSES
};

void causes_begin(const struct program *program);
void causes_happened(int rank, enum cause cause, uint64_t now);
bool causes_has(int rank, enum cause cause);
bool causes_has_any(void);
/* Calls that do not match: a connection that ends by them is other communicators', too, so from now on any may fail. */
void causes_unlike(bool is_left_out);
/* A hostile rank, or one that it has spoilt, is of the communicator: results may be wrong. */
bool causes_taint(uint32_t members);
void causes_failed(uint64_t now, int rank, int item, uint32_t members, int status, int peer,
                   bool is_busy);
/* At the end: how many failures have no cause; each is said. */
int causes_unexplained(void (*say)(const char *format, ...));

/* What the first caller with this key has said. */
uint64_t causes_first(uint64_t key, uint64_t value);
/* Whether all callers with this key say the same, unless something was done to anybody. */
bool causes_is_alike(uint64_t key, uint64_t value);

#endif
