/* The states of a queue pair, and which attributes each transition needs and allows. */
#include <string.h>

#include "verbs/hca.h"
#include "run/pending.h"
#include "run/run.h"
#include "wire/wire.h"

struct transition {
    enum ibv_qp_state from, to;
    int types, needs, allows; /* types: a bit each */
};

enum {
    PATH = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
    TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
    LATE_INIT = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
    TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    TO_RTR_RC = TO_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    TO_RTS_RC = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                IBV_QP_MAX_QP_RD_ATOMIC,
    RUNNING = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | PATH,
    DRAINED = IBV_QP_PORT | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | PATH,
    DRAINED_RC = DRAINED | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
};

enum { RC = 1 << IBV_QPT_RC, UC = 1 << IBV_QPT_UC, UD = 1 << IBV_QPT_UD };

static const struct transition transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, RC | UC, TO_INIT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, UD, TO_INIT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, RC | UC, 0, TO_INIT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, UD, 0, TO_INIT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, RC, TO_RTR_RC, LATE_INIT},
    {IBV_QPS_INIT, IBV_QPS_RTR, UC, TO_RTR, LATE_INIT},
    {IBV_QPS_INIT, IBV_QPS_RTR, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, RC, TO_RTS_RC, RUNNING | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, UC, IBV_QP_SQ_PSN, RUNNING},
    {IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, RC, 0, RUNNING | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, UC, 0, RUNNING},
    {IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, RC | UC | UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, RC, 0, RUNNING | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_RTS, UC, 0, RUNNING},
    {IBV_QPS_SQD, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, RC, 0, DRAINED_RC},
    {IBV_QPS_SQD, IBV_QPS_SQD, UC, 0, DRAINED},
    {IBV_QPS_SQD, IBV_QPS_SQD, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_SQE, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static int check_mask(const struct shm_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
                      int mask)
{
    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        return mask & ~IBV_QP_CUR_STATE ? EINVAL : 0;
    }
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        const struct transition *t = &transitions[i];

        if (t->from == from && t->to == to && t->types & 1 << qp->type) {
            bool fits = (mask & t->needs) == t->needs && !(mask & ~(t->needs | t->allows));

            return fits ? 0 : EINVAL;
        }
    }
    return EINVAL;
}

static int check_values(const struct shm_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    const struct shm_conf *conf = &shm.head->conf;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_REMOTE_ATOMIC;
    int keys = conf->link == IBV_LINK_LAYER_INFINIBAND ? SHM_PKEYS : 1;
    bool bad =
        ((mask & IBV_QP_PORT) && (a->port_num < 1 || a->port_num > conf->ports)) ||
        ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index >= keys) ||
        ((mask & IBV_QP_ACCESS_FLAGS) && a->qp_access_flags & ~(unsigned int)access) ||
        ((mask & IBV_QP_PATH_MTU) &&
         (a->path_mtu < IBV_MTU_256 || a->path_mtu > (enum ibv_mtu)conf->mtu)) ||
        ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > conf->max_rd_atomic) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > conf->max_rd_atomic) ||
        ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31) ||
        ((mask & IBV_QP_TIMEOUT) && a->timeout > 31) ||
        ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
        ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) ||
        ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num >> 24) ||
        ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != (enum ibv_qp_state)qp->state);

    if (bad) {
        return EINVAL;
    }
    return mask & PATH ? EOPNOTSUPP : 0;
}

/* To RESET: everything posted is forgotten, and its completions with it. */
static void reset(uint32_t index)
{
    struct shm_qp *s = &shm.qps[index];
    struct ibv_qp_cap cap = s->attr.cap;

    memset(&s->attr, 0, sizeof(s->attr));
    s->attr.cap = cap;
    wire_drop(index);
    s->sq_tail = s->sq_started = s->sq_landed = s->sq_received = s->sq_done = 0;
    atomic_store(&s->sq_free, 0);
    atomic_store(&s->due, 0);
    s->losses = s->rnr_waits = 0;
    s->port = s->peer_port = s->peer = SHM_NONE;
    s->retry_at = 0;
    s->has_ece = 0;
    s->rq.head = s->rq.tail = 0;
    atomic_store(&s->rq.held, 0);
    atomic_fetch_add(&s->resets, 1);
    atomic_store(&s->established, 0);
    atomic_store(&s->last_wqe, 0);
}

#define COPY_IF(bit, field)                                                                        \
    if (mask & (bit)) {                                                                            \
        s->attr.field = a->field;                                                                  \
    }

static void copy_attr(struct shm_qp *s, const struct ibv_qp_attr *a, int mask)
{
    COPY_IF(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify)
    COPY_IF(IBV_QP_ACCESS_FLAGS, qp_access_flags)
    COPY_IF(IBV_QP_PKEY_INDEX, pkey_index)
    COPY_IF(IBV_QP_PORT, port_num)
    COPY_IF(IBV_QP_QKEY, qkey)
    COPY_IF(IBV_QP_AV, ah_attr)
    COPY_IF(IBV_QP_PATH_MTU, path_mtu)
    COPY_IF(IBV_QP_TIMEOUT, timeout)
    COPY_IF(IBV_QP_RETRY_CNT, retry_cnt)
    COPY_IF(IBV_QP_RNR_RETRY, rnr_retry)
    COPY_IF(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic)
    COPY_IF(IBV_QP_MIN_RNR_TIMER, min_rnr_timer)
    COPY_IF(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
    COPY_IF(IBV_QP_DEST_QPN, dest_qp_num)
    if (mask & IBV_QP_SQ_PSN) {
        s->sq_psn = s->attr.sq_psn = a->sq_psn & 0xffffff;
    }
    if (mask & IBV_QP_RQ_PSN) {
        s->attr.rq_psn = a->rq_psn & 0xffffff;
        atomic_store(&s->epsn, s->attr.rq_psn);
    }
}

static int apply(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    struct shm_qp *s = &shm.qps[qp->index];
    struct hca_ctx *ctx = to_ctx(qp->qp.context);

    if (mask & IBV_QP_AV) {
        int err = av_make(ctx, &a->ah_attr, &s->av);
        uint32_t port = err ? SHM_NONE : av_port(&s->av);

        if (err) {
            return err;
        }
        s->peer_port = port; /* a path to nowhere is legal: requests get lost */
    }
    copy_attr(s, a, mask);
    if (mask & IBV_QP_PORT) {
        s->port = (uint32_t)(ctx_port(ctx, a->port_num) - shm.ports);
    }
    return 0;
}

static int change(struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    struct shm_qp *s = &shm.qps[qp->index];
    enum ibv_qp_state from = (enum ibv_qp_state)atomic_load(&s->state);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : from;
    int err = check_mask(s, from, to, mask);

    err = err ? err : check_values(s, a, mask);
    err = err ? err : apply(qp, a, mask);
    if (err) {
        return err;
    }
    if (to == IBV_QPS_RESET) {
        reset(qp->index);
    }
    if (to != IBV_QPS_ERR) {
        atomic_store(&s->state, to);
    }
    qp->qp.state = to;
    return 0;
}

HCA_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    struct shm_qp *s = &shm.qps[qp->index];
    bool to_error = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR;
    bool to_reset = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
    int err;

    if (proc_is_forked()) {
        return EPERM;
    }
    lock_take(&s->sq_lock);
    lock_take(&s->rq_lock);
    err = change(qp, attr, mask);
    lock_drop(&s->rq_lock);
    lock_drop(&s->sq_lock);
    if (!err && to_error) {
        qp_kill(qp->index, 0);
    }
    if (!err && to_reset) {
        pending_drop(qp->index);
        grace_wait(); /* a peer may be in the middle of a request */
        cq_clean(s->send_cq, qp->index);
        cq_clean(s->recv_cq, qp->index);
    }
    if (!err && !to_reset) {
        run_queue(qp->index);
    }
    return err;
}
