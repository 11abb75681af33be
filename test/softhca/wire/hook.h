/*
 * Where models get their say about a request. All hooks are called under the source's sq_lock and
 * inside a section, by whichever process runs the request: they may read everything in shared
 * memory and change only what is theirs (under their own lock, a leaf).
 *
 * Fault: fault_fate() is asked each time a request is about to travel (again at each retry).
 * Wire:  wire_start() is told of each request when it is posted (a fenced one: when its fence
 *        falls), wire_look() when its bytes may have arrived; both only when shm.head->wired is
 *        set (wire.h).
 * Delay: delay_times() moves the times of a request when shm.head->timed is set.
 *
 * Times are shm_now() nanoseconds. One that is due is acted on by the next verbs call of either
 * side, or by the source's timer thread (pending.h) when both sleep.
 */
#ifndef SOFTHCA_HOOK_H
#define SOFTHCA_HOOK_H

#include "shm/shm.h"

enum fate {
    FATE_DELIVER,
    FATE_LOSE, /* RC sends it again after its timeout, UC and UD never notice */
    FATE_RNR,  /* as if no receive were posted (RC) */
};

/* `port` is the index of the target's port. */
enum fate fault_fate(const struct shm_qp *source, uint32_t port, const struct shm_wqe *wqe);

/* Nanoseconds that a request of `source` waits before it travels; asked once a request. */
uint64_t fault_delay(const struct shm_qp *source);

/* 0, or the errno with which a registration of `length` bytes is refused. */
int fault_register(uint64_t length);

struct wire_times {
    uint64_t land; /* all bytes are in the target's memory (a READ: have left it) */
    uint64_t recv; /* the target sees its completion */
    uint64_t done; /* the source sees its completion */
};

void delay_times(struct wire_times *times);

/* Sends the request of queue pair `index` on its way. False: there is no room for it now. */
bool wire_start(uint32_t index, struct shm_wqe *wqe, uint64_t now);
/* True: the times are known. False: look again at times->land. */
bool wire_look(uint32_t index, struct shm_wqe *wqe, uint64_t now, struct wire_times *times);
/* Nobody will look. */
void wire_forget(uint32_t index, struct shm_wqe *wqe);

#endif
