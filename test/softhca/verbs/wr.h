/* Posting, both ways: lists of work requests, and the builder functions of ibv_wr_*. */
#ifndef SOFTHCA_WR_H
#define SOFTHCA_WR_H

#include "verbs/hca.h"

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The verb: a queue pair, with a builder when it is asked for. */
struct ibv_qp *wr_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

#endif
