/* The runner's side of faults. Not thread-safe: the first calls come before control_start(). */
#ifndef SOFTHCA_FAULTACT_H
#define SOFTHCA_FAULTACT_H

#include "fault/fault.h"

/* Begins a fault: now, or when its time has come. 0 or -ENOSPC. */
int faultact_begin(const struct shm_fault *f);
/* Does what is due; the time when to call again, or TIME_NEVER. */
uint64_t faultact_run(void);

/* What happened is said on stderr unless quiet. */
void faultact_be_quiet(void);
/* At the end of the run: how often each rule hit. */
void faultact_report(void);

#endif
