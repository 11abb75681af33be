#include "verbs/hca.h"

#include <stdlib.h>
#include <string.h>

#include "run/pending.h"
#include "shm/chan.h"
#include "wire/wire.h"

uint32_t qp_find(uint32_t number)
{
    uint32_t index = number & ((1u << QP_INDEX_BITS) - 1);

    return number && atomic_load_explicit(&shm.qps[index].number, memory_order_acquire) == number
               ? index
               : SHM_NONE;
}

static uint16_t key_of(const struct shm_qp *qp)
{
    return qp->port == SHM_NONE ? 0 : shm.ports[qp->port].pkey[qp->attr.pkey_index];
}

bool qp_share_partition(const struct shm_qp *a, const struct shm_qp *b)
{
    const uint16_t full = 0x8000;
    uint16_t x = key_of(a), y = key_of(b);

    return (x & ~full) != 0 && ((x ^ y) & ~full) == 0 && ((x | y) & full) != 0;
}

static uint32_t ece_of(const struct shm_qp *qp)
{
    return qp->has_ece ? qp->ece : 0;
}

bool qp_have_agreed(const struct shm_qp *a, const struct shm_qp *b)
{
    return ece_of(a) == ece_of(b);
}

static int make_rings(struct shm_qp *s, const struct ibv_qp_cap *cap, bool has_srq)
{
    size_t tail = cap->max_send_sge * sizeof(struct ibv_sge);
    int err;

    tail = tail > cap->max_inline_data ? tail : cap->max_inline_data;
    s->sq = (struct shm_ring){
        .stride = (uint32_t)(sizeof(struct shm_wqe) + tail + 15) & ~15u,
        .slots = cap->max_send_wr,
    };
    err = ring_make(&s->sq);
    if (err) {
        return err;
    }
    err = rq_make(&s->rq, has_srq ? 0 : cap->max_recv_wr, cap->max_recv_sge);
    if (err) {
        ring_free(&s->sq, proc_self);
    }
    return err;
}

static uint32_t index_of_cq(struct ibv_cq *cq)
{
    return container_of(cq, struct hca_cq, cq)->index;
}

static int make_shared(struct hca_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    struct hca_ctx *ctx = to_ctx(qp->qp.context);
    int err = shm_slot_get(&shm.head->qps, &qp->index);
    struct shm_qp *s;
    uint32_t generation;

    if (err) {
        return err;
    }
    s = &shm.qps[qp->index];
    generation = s->generation;
    memset(s, 0, sizeof(*s));
    s->proc = proc_self;
    err = make_rings(s, &attr->cap, attr->srq != NULL);
    if (err) {
        shm_slot_put(&shm.head->qps, qp->index);
        return err;
    }
    s->type = attr->qp_type;
    s->pd = pd_id(attr->pd);
    s->ctx = ctx->chan;
    s->host = ctx->host;
    s->hca = ctx->hca;
    s->create_flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
    s->sig_all = attr->sq_sig_all != 0;
    s->send_cq = index_of_cq(attr->send_cq);
    s->recv_cq = index_of_cq(attr->recv_cq);
    s->srq = attr->srq ? container_of(attr->srq, struct hca_srq, srq)->index : SHM_NONE;
    s->user = (uintptr_t)&qp->qp;
    s->attr.cap = attr->cap;
    s->peer = s->port = s->peer_port = SHM_NONE;
    s->state = IBV_QPS_RESET;
    s->generation = generation % 0xfe + 1; /* numbers 0 and 1 belong to management */
    atomic_store(&s->number, s->generation << QP_INDEX_BITS | qp->index);
    return 0;
}

static int check_attr(const struct ibv_qp_init_attr_ex *a)
{
    const struct shm_conf *conf = &shm.head->conf;
    const uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

    if (a->comp_mask & ~known) {
        return EOPNOTSUPP;
    }
    if ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
        a->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) {
        return EOPNOTSUPP;
    }
    if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC && a->qp_type != IBV_QPT_UD) {
        return EOPNOTSUPP;
    }
    if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd || !a->send_cq || !a->recv_cq) {
        return EINVAL;
    }
    if (a->cap.max_send_wr > conf->max_qp_wr || a->cap.max_send_sge > conf->max_sge) {
        return EINVAL;
    }
    if (a->cap.max_inline_data > conf->max_inline) {
        return (int)conf->inline_errno;
    }
    if (!a->srq && (a->cap.max_recv_wr > conf->max_qp_wr || a->cap.max_recv_sge > conf->max_sge)) {
        return EINVAL;
    }
    return 0;
}

static void use_parts(struct hca_qp *qp, int change)
{
    atomic_fetch_add(&container_of(qp->qp.send_cq, struct hca_cq, cq)->users, change);
    atomic_fetch_add(&container_of(qp->qp.recv_cq, struct hca_cq, cq)->users, change);
    if (qp->qp.srq) {
        atomic_fetch_add(&container_of(qp->qp.srq, struct hca_srq, srq)->users, change);
    }
    pd_use(qp->qp.pd, change);
}

static void fill_public(struct hca_qp *qp, struct ibv_context *ctx,
                        const struct ibv_qp_init_attr_ex *attr)
{
    qp->qp.context = ctx;
    qp->qp.qp_context = attr->qp_context;
    qp->qp.pd = attr->pd;
    qp->qp.send_cq = attr->send_cq;
    qp->qp.recv_cq = attr->recv_cq;
    qp->qp.srq = attr->srq;
    qp->qp.qp_type = attr->qp_type;
    qp->qp.state = IBV_QPS_RESET;
    memcpy(&qp->init, attr, sizeof(qp->init));
}

static uint32_t grant_inline(uint32_t asked)
{
    const struct shm_conf *conf = &shm.head->conf;
    uint32_t granted = (asked + conf->inline_step - 1) / conf->inline_step * conf->inline_step;

    return granted < conf->max_inline ? granted : conf->max_inline;
}

struct ibv_qp *qp_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
    int err = proc_is_forked() ? EPERM : check_attr(attr);
    struct hca_qp *qp = err ? NULL : calloc(1, sizeof(*qp));

    if (!qp) {
        return FAIL_WITH(err ? err : ENOMEM);
    }
    if (attr->srq) {
        attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
    }
    attr->cap.max_inline_data = grant_inline(attr->cap.max_inline_data);
    fill_public(qp, ctx, attr);
    err = -make_shared(qp, attr);
    if (err) {
        free(qp);
        return FAIL_WITH(err);
    }
    qp->qp.handle = qp->index;
    qp->qp.qp_num = shm.qps[qp->index].number;
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
    use_parts(qp, 1);
    return &qp->qp;
}

HCA_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr_ex attr = {0};
    struct ibv_qp *qp;

    memcpy(&attr, init, sizeof(*init)); /* the short form is the long one's beginning */
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd = pd;
    qp = qp_create_ex(pd->context, &attr);
    if (qp) {
        init->cap = attr.cap;
    }
    return qp;
}

HCA_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);

    return qp->build ? &qp->ex : NULL;
}

void qp_free(uint32_t index)
{
    struct shm_qp *s = &shm.qps[index];

    lock_take(&s->sq_lock);
    wire_drop(index);
    lock_take(&s->rq_lock);
    atomic_store(&s->number, 0);
    lock_drop(&s->rq_lock);
    lock_drop(&s->sq_lock);
    pending_drop(index);
    grace_wait(); /* nobody completes to it any more */
    pending_drop(index);
    mcast_is_member(index, true);
    cq_clean(s->send_cq, index);
    if (s->recv_cq != s->send_cq) {
        cq_clean(s->recv_cq, index);
    }
    ring_free(&s->sq, s->proc);
    ring_free(&s->rq.ring, s->proc);
    shm_slot_put(&shm.head->qps, index);
}

HCA_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);

    if (!proc_is_forked() && mcast_is_member(qp->index, false)) {
        return EBUSY;
    }
    if (!proc_is_forked()) {
        qp_free(qp->index);
        chan_forget_element(shm.qps[qp->index].ctx, (uintptr_t)ibqp);
        hca_wait_acks(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, &qp->async_events);
    }
    use_parts(qp, -1);
    free(qp->build);
    free(qp);
    return 0;
}

HCA_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
                            struct ibv_qp_init_attr *init)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    struct shm_qp *s = &shm.qps[qp->index];

    lock_take(&s->sq_lock);
    *attr = s->attr;
    attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)atomic_load(&s->state);
    attr->sq_psn = s->sq_psn;
    attr->rq_psn = s->epsn;
    attr->sq_draining = attr->qp_state == IBV_QPS_SQD && s->sq_done != s->sq_landed;
    ibqp->state = attr->qp_state;
    lock_drop(&s->sq_lock);
    if (init) {
        *init = qp->init;
        init->cap = s->attr.cap;
    }
    return 0;
}

static uint32_t own_ece(const struct shm_qp *s)
{
    uint32_t all = shm.head->conf.ece;

    return s->host % 2 ? all & (all - 1) : all;
}

static int refused(int error)
{
    errno = error;
    return error;
}

HCA_EXPORT int ibv_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
    const struct shm_qp *s = &shm.qps[container_of(ibqp, struct hca_qp, qp)->index];

    if (!shm.head->conf.ece) {
        return refused(EOPNOTSUPP);
    }
    *ece = (struct ibv_ece){.vendor_id = HCA_VENDOR, .options = s->has_ece ? s->ece : own_ece(s)};
    return 0;
}

/* Before it is connected; what it has not is left out, and told. */
HCA_EXPORT int ibv_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
    struct shm_qp *s = &shm.qps[container_of(ibqp, struct hca_qp, qp)->index];

    if (!shm.head->conf.ece) {
        return refused(EOPNOTSUPP);
    }
    if (ece->vendor_id != HCA_VENDOR || ece->comp_mask || atomic_load(&s->state) > IBV_QPS_INIT) {
        return refused(EINVAL);
    }
    s->ece = ece->options &= own_ece(s);
    s->has_ece = 1;
    return 0;
}

/* The firmware knows once the queue pair is connected. */
HCA_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *ibqp, enum ibv_wr_opcode op,
                                          uint32_t flags)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    uint32_t state = atomic_load(&shm.qps[qp->index].state);

    return shm.head->conf.in_order && flags == 0 && (state == IBV_QPS_RTR || state == IBV_QPS_RTS);
}

void qp_flush_receives(uint32_t index)
{
    struct shm_qp *s = &shm.qps[index];
    struct shm_cqe e = {
        .wc = {.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV, .qp_num = s->number},
        .qp = index,
        .srq = SHM_NONE,
        .resets = s->resets};

    if (s->srq != SHM_NONE) {
        if (s->number && !atomic_exchange(&s->last_wqe, 1)) {
            chan_signal_async(s->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, s->user, 0);
        }
        return;
    }
    lock_take(&s->rq_lock);
    while (s->number && s->rq.head != s->rq.tail) {
        const struct shm_rwqe *w = shm_at(&s->rq.ring, s->rq.head);

        e.wc.wr_id = w->wr_id;
        s->rq.head++;
        cq_push(s->recv_cq, &e);
    }
    lock_drop(&s->rq_lock);
}

void qp_kill(uint32_t index, uint32_t event)
{
    if (pending_break(index, event)) {
        qp_flush_receives(index);
    }
}
