/* Posting, both ways: lists of work requests, and the builder functions of ibv_wr_*. */
#ifndef SOFTHCA_WR_H
#define SOFTHCA_WR_H

#include "verbs/hca.h"

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Gives a queue pair its builder. 0 or an errno. */
int wr_set_ops(struct hca_qp *qp, uint64_t send_ops);
void wr_free(struct hca_qp *qp);

/* One request into the send queue, under its lock. 0 or an errno; `limits` is the queue pair's. */
int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr);

#endif
