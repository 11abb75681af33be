/* Processes of a test of libibshift: forked, and meeting in memory that they share. */
#ifndef TEST_LIB_PROCESSES_H
#define TEST_LIB_PROCESSES_H

#include "lib/ibshift.h"

enum { RANKS_MAX = 16, MEET_BYTES = 1 << 17 };

struct meeting; /* shared */

struct process {
    struct meeting *meeting;
    uint32_t rank, ranks, number;
    struct ibs_job *job; /* opened by processes_run(), unless opens is false */
};

/* Waits for all, at the most for half a minute; also the context and function of a setup. */
int processes_allgather(void *process, const void *mine, void *all, size_t size);

/* The process's status is what work() returns. Those that are expected to die have their bit in `dead`.
 * 0, or 1: one has failed, or died unasked. */
int processes_run(uint32_t ranks, bool opens, unsigned dead, int (*work)(struct process *process));

/* Says where, with errno's word, and returns 1. */
int processes_fail(const struct process *process, const char *what, int rc);

#endif
