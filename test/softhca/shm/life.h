/* Who of the process table lives: for the processes of a run and for its runner. */
#ifndef SOFTHCA_LIFE_H
#define SOFTHCA_LIFE_H

#include <stdbool.h>
#include <stdint.h>

enum { PROC_CLAIMED = -1 }; /* the pid of a process table slot between free and in use */

/* In clock ticks since boot, 0 when there is no such process. */
uint64_t life_start_time(int32_t pid);
/* Whether the process that took slot `proc` of the process table still runs. */
bool proc_is_alive(uint32_t proc);

#endif
