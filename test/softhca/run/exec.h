#ifndef SOFTHCA_EXEC_H
#define SOFTHCA_EXEC_H

#include "run/copy.h"
#include "run/run.h"

/* The request's own memory, checked for `access`; false: wqe->status has the local error. */
bool exec_gather(const struct shm_qp *qp, struct shm_wqe *wqe, uint32_t access, struct pieces *p);

/* Adversarial mode: what a READ or an atomic brings comes when it completes (until then its buffer
   holds rubbish), so that requests after it that are not fenced overtake it. */
bool exec_is_late(const struct shm_wqe *wqe);
void exec_bring_late(struct run *run, struct shm_wqe *wqe);

/* Adversarial mode: the oldest request waits for its time, but a tail of its bytes lands now. */
void exec_early(struct run *run, struct shm_wqe *wqe);
/* On a wire: half of a long write's time is over, all of it but the last packet may land. */
void exec_ahead(struct run *run, struct shm_wqe *wqe);

/* Hands a receive completion over: at once, or with the request when a model is on. */
void exec_deliver(struct run *run, struct shm_wqe *wqe, struct shm_cqe *e);

#endif
