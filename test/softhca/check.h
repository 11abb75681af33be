/*
 * Deferred mode's watch over buffers: what a request sends may not change, be freed or be
 * deregistered before its completion (or that of a later request of its queue pair) was polled.
 */
#ifndef SOFTHCA_CHECK_H
#define SOFTHCA_CHECK_H

#include "shm.h"

/* Remembers what the source buffers hold. */
void check_posted(const struct shm_qp *qp, struct shm_wqe *wqe);
/* The completion of the request at `position` was polled: looks at it and all before it. */
void check_polled(uint32_t qp, uint64_t position);

#endif
