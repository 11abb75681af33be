/*
 * Deferred mode's watch over buffers: what a request sends may not change, be freed or be
 * deregistered before its completion (or that of a later request of its queue pair) was polled: a
 * reliable connection may send it again until then. What is never sent again (UC, UD) is watched
 * only until it has been sent, since protocols above learn of that by other means.
 */
#ifndef SOFTHCA_CHECK_H
#define SOFTHCA_CHECK_H

#include "shm/shm.h"

/* Remembers what the source buffers hold. */
void check_posted(const struct shm_qp *qp, struct shm_wqe *wqe);
/* The request is about to land. */
void check_landing(const struct shm_qp *qp, struct shm_wqe *wqe);
/* The completion of the request at `position` was polled: looks at it and all before it. */
void check_polled(uint32_t qp, uint64_t position);

#endif
