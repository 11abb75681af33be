/* What the programs of bench/ that talk plain verbs do alike. */
#ifndef BENCH_RC_H
#define BENCH_RC_H

#include <infiniband/verbs.h>
#include <time.h>

/* Two reliable queue pairs, each of which may write into the other's memory. 0, or what
 * ibv_modify_qp() says. */
static inline int rc_connect(struct ibv_qp *qp, uint32_t qpn, struct ibv_ah_attr to,
                             enum ibv_mtu mtu, uint8_t timeout)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                            .path_mtu = mtu,
                            .dest_qp_num = qpn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 12,
                            .ah_attr = to,
                            .timeout = timeout,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .max_rd_atomic = 1};
    int rc =
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    a.ah_attr.port_num = 1;
    a.qp_state = IBV_QPS_RTR;
    rc = rc != 0
             ? rc
             : ibv_modify_qp(qp, &a,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    return rc != 0 ? rc
                   : ibv_modify_qp(qp, &a,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline double rc_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* For qsort(). */
static inline int rc_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

#endif
