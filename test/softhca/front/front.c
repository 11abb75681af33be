/* What the shared code asks of a process, for softhca-run: it has a place after theirs. */
#include "shm/proc.h"
#include "shm/shm.h"

uint32_t proc_self = SHM_PROCS;
