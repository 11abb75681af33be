/* Processes under one kernel, whose end can be seen. */
#ifndef IBSHIFT_JOB_PROCESS_H
#define IBSHIFT_JOB_PROCESS_H

#include <stdint.h>

/* Which process it is: its number, in its space of numbers; 0: not known. */
struct ibshift_process {
    uint64_t space;
    uint64_t started; /* tells it from a later one of the same number */
    uint64_t pid;
};

struct ibshift_process ibshift_process_self(void);

/* How it is known that it has ended, or NULL; a process under another kernel cannot be looked at. */
const char *ibshift_process_has_ended(const struct ibshift_process *self,
                                      const struct ibshift_process *process);

#endif
