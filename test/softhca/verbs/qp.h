/* Queue pairs: making them, and their states. */
#ifndef SOFTHCA_QP_H
#define SOFTHCA_QP_H

#include "verbs/hca.h"

enum { QP_INDEX_BITS = 16 };

struct ibv_qp *qp_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
void qp_free(uint32_t index);

/* The index of the queue pair with this number, SHM_NONE when there is none. */
uint32_t qp_find(uint32_t number);

/* To the error state, with an asynchronous event (0 = none) when it was not there yet. The receive
   queue is flushed now, the send queue when its lock's holder next runs it. */
void qp_kill(uint32_t index, uint32_t event);
void qp_flush_receives(uint32_t index);

/* The modify verb without its checks of masks (state.c has those). */
int qp_check_mask(const struct shm_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

#endif
