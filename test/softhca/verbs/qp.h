/* Queue pairs: making them, their states, and where they take their receives from. */
#ifndef SOFTHCA_QP_H
#define SOFTHCA_QP_H

#include "verbs/hca.h"

enum { QP_INDEX_BITS = 16 };

struct ibv_qp *qp_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
void qp_free(uint32_t index);

/* The index of the queue pair with this number, SHM_NONE when there is none. */
uint32_t qp_find(uint32_t number);

/* Whether both have the same options of their connection. */
bool qp_have_agreed(const struct shm_qp *a, const struct shm_qp *b);

/* Whether packets of one may enter the other: a key of the same partition, not both as limited
   members. Others vanish. */
bool qp_share_partition(const struct shm_qp *a, const struct shm_qp *b);

/* To the error state, with an asynchronous event (0 = none) when it was not there yet. The receive
   queue is flushed now, the send queue when its lock's holder next runs it. */
void qp_kill(uint32_t index, uint32_t event);
void qp_flush_receives(uint32_t index);

/* Shared receive queues, and what they have in common with a queue pair's own. */
struct ibv_srq *srq_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void srq_free(uint32_t index);

/* The memory of a receive queue. 0 or -errno. */
int rq_make(struct shm_rq *rq, uint32_t slots, uint32_t sge);
/* Queues a list of receives under the queue's lock. 0 or an errno. */
int rq_post(struct shm_rq *rq, struct lock *lock, uint32_t max_sge, struct ibv_recv_wr *wr,
            struct ibv_recv_wr **bad);

#endif
