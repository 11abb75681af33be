/* Completion queues. */
#ifndef SOFTHCA_CQ_H
#define SOFTHCA_CQ_H

#include "verbs/hca.h"

#define CQ_WC_FLAGS (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

struct ibv_cq_ex *cq_create_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *cq, int solicited_only);

/*
 * --stalls: the longest time in which nothing moved though everybody was there to see it. A process
 * that has no processor does not poll, so the machine's load is not in it: between two requests, of
 * whomever, the process counts that has polled least. A poll is taken as 1 us, more than a device needs.
 */
void cq_moved(void);
/* For test programs: what comes now, such as MPI_Finalize(), which waits for others by other means, is
   not looked at any more. */
HCA_EXPORT void softhca_stalls_end(void);

/* Makes a completion visible; overrun kills the queue and the queue pairs that use it. */
void cq_push(uint32_t cq, const struct shm_cqe *e);
/* Whoever pushed to it may have died at that: gives the event that is missing. Returns the position
   behind the last completed request of the queue pair that is still to be polled, or 0. */
uint64_t cq_mend(uint32_t cq, uint32_t qp);
/* Removes the completions of a queue pair or shared receive queue (table indexes, SHM_NONE = any).
 */
void cq_clean(uint32_t cq, uint32_t qp);
void cq_free(uint32_t cq);

#endif
