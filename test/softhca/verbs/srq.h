#ifndef SOFTHCA_SRQ_H
#define SOFTHCA_SRQ_H

#include "verbs/hca.h"

struct ibv_srq *srq_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int srq_get_number(struct ibv_srq *srq, uint32_t *number);
int srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void srq_free(uint32_t index);

/* A receive queue of `slots` receives of up to `sge` pieces. 0 or -errno. */
int rq_make(struct shm_rq *rq, uint32_t slots, uint32_t sge);
void rq_free(struct shm_rq *rq);
/* Queues one receive under the queue's lock. 0 or an errno. */
int rq_put(struct shm_rq *rq, uint32_t max_sge, const struct ibv_recv_wr *wr);

#endif
