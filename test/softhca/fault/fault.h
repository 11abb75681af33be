/*
 * Faults on demand. softhca-run reads them (faultspec.h) and acts on what happens by the clock
 * (faultact.h); what depends on requests and registrations is a rule in the shared file, asked by
 * the processes (hook.h). Only the runner adds and ends rules.
 */
#ifndef SOFTHCA_FAULT_H
#define SOFTHCA_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHM_FAULTS = 256, FAULT_TEXT = 128 };

enum fault_kind {
    FAULT_NONE,
    FAULT_KILL,
    FAULT_DOWN,
    FAULT_UP,
    FAULT_EVENT,
    FAULT_LOSE,
    FAULT_RNR,
    FAULT_SLOW,
    FAULT_REFUSE,
    FAULT_LIMIT,
    FAULT_CLEAR,
    FAULT_SHOW,
};

#define FAULT_ALWAYS (1ull << 32)

struct shm_fault {
    _Atomic uint32_t kind;
    uint32_t rank, host, to, hca, port; /* SHM_NONE = any */
    uint32_t event;                     /* enum ibv_event_type */
    uint64_t chance;                    /* of FAULT_ALWAYS */
    uint64_t delay_ns, bytes;
    uint64_t in_ns, for_ns;      /* 0 = at once, for ever */
    uint64_t after, count;       /* cases passed over, cases hit at most */
    uint64_t from, until;        /* set when the rule begins */
    _Atomic uint64_t seen, hits; /* hits may pass count */
    char text[FAULT_TEXT];
};

/* Whether it is counted per request or registration, and not done by the clock. */
static inline bool fault_is_rule(const struct shm_fault *f)
{
    uint32_t kind = atomic_load_explicit(&f->kind, memory_order_relaxed);
    return (kind >= FAULT_LOSE && kind <= FAULT_LIMIT) || (kind == FAULT_KILL && f->after);
}

#endif
