/* What the shared code asks of a process, for softhca-run: it has a place after theirs. */
#include "shm/layout.h"

uint32_t proc_self = SHM_PROCS;
