/*
 * Faults on demand. softhca-run reads them (faultspec.h) and acts on what happens by the clock
 * (faultact.h); what depends on requests and registrations is a rule in the shared file, asked by
 * the processes. Only the runner adds and ends rules.
 *
 * Rules are asked under the source's sq_lock and inside a section, by whichever process runs the
 * request: they may read everything in shared memory and change only their own counts.
 */
#ifndef SOFTHCA_FAULT_H
#define SOFTHCA_FAULT_H

#include "shm/layout.h"

/* Whether it is counted per request or registration, and not done by the clock. */
static inline bool fault_is_rule(const struct shm_fault *f)
{
    uint32_t kind = atomic_load_explicit(&f->kind, memory_order_relaxed);
    return (kind >= FAULT_LOSE && kind <= FAULT_LIMIT) || (kind == FAULT_KILL && f->after);
}

enum fate {
    FATE_DELIVER,
    FATE_LOSE, /* RC sends it again after its timeout, UC and UD never notice */
    FATE_RNR,  /* as if no receive were posted (RC) */
};

/* Asked each time a request is about to travel, again at each retry. `port` is the index of the target's port. */
enum fate fault_fate(const struct shm_qp *source, uint32_t port, const struct shm_wqe *wqe);

/* Nanoseconds that a request of `source` waits before it travels; asked once a request. */
uint64_t fault_delay(const struct shm_qp *source);

/* 0, or the errno with which a registration of `length` bytes is refused. */
int fault_register(uint64_t length);

#endif
