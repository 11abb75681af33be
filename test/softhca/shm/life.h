/* Who of the process table lives: for the processes of a run and for its runner. */
#ifndef SOFTHCA_LIFE_H
#define SOFTHCA_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* In clock ticks since boot, 0 when there is no such process. */
uint64_t life_start_time(int32_t pid);
/* Whether the process that took slot `proc` of the process table still runs, and uses it. */
bool proc_is_alive(uint32_t proc);
/* Whether the slot is a dead one's: of one that used it, or that died taking or emptying it. */
bool proc_is_left(uint32_t proc);

#endif
