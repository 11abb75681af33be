/* Receive queues: those of queue pairs, and shared ones. */
#include <stdlib.h>
#include <string.h>

#include "run/pending.h"
#include "shm/chan.h"
#include "verbs/hca.h"

int rq_make(struct shm_rq *rq, uint32_t slots, uint32_t sge)
{
    memset(rq, 0, sizeof(*rq));
    rq->ring.slots = slots;
    rq->ring.stride = sizeof(struct shm_rwqe) + sge * sizeof(struct ibv_sge);
    rq->ring.stride = (rq->ring.stride + 15) & ~15u;
    return ring_make(&rq->ring);
}

static int put(struct shm_rq *rq, uint32_t max_sge, const struct ibv_recv_wr *wr)
{
    struct shm_rwqe *w;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge) {
        return EINVAL;
    }
    if (atomic_load(&rq->held) >= rq->ring.slots) {
        return ENOMEM;
    }
    w = shm_at(&rq->ring, rq->tail);
    w->wr_id = wr->wr_id;
    w->nsge = (uint32_t)wr->num_sge;
    memcpy(w->sge, wr->sg_list, w->nsge * sizeof(w->sge[0]));
    atomic_fetch_add(&rq->held, 1);
    rq->tail++;
    return 0;
}

int rq_post(struct shm_rq *rq, struct lock *lock, uint32_t max_sge, struct ibv_recv_wr *wr,
            struct ibv_recv_wr **bad)
{
    int err = 0;

    lock_take(lock);
    for (; wr; wr = wr->next) {
        err = put(rq, max_sge, wr);
        if (err) {
            *bad = wr;
            break;
        }
    }
    lock_drop(lock);
    return err;
}

static int make_srq(struct hca_srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
    int err = shm_slot_get(&shm.head->srqs, &srq->index);
    struct shm_srq *s;

    if (err) {
        return -err;
    }
    s = &shm.srqs[srq->index];
    s->proc = proc_self; /* first: what the ring locks is counted there */
    err = rq_make(&s->rq, attr->attr.max_wr, attr->attr.max_sge);
    if (err) {
        shm_slot_put(&shm.head->srqs, srq->index);
        return -err;
    }
    s->pd = pd_id(attr->pd);
    s->ctx = to_ctx(srq->srq.context)->chan;
    s->user = (uintptr_t)&srq->srq;
    s->max_sge = attr->attr.max_sge;
    s->limit = attr->attr.srq_limit;
    s->generation = (s->generation + 1) & 0xff;
    atomic_store(&s->number, s->generation << 16 | (srq->index + 1));
    return 0;
}

struct ibv_srq *srq_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    struct hca_srq *srq;
    int err;

    if (attr->comp_mask & ~known || shm.head->conf.no_srq ||
        ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC)) {
        return FAIL_WITH(EOPNOTSUPP);
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->attr.max_wr < 1 ||
        attr->attr.max_wr > shm.head->conf.max_srq_wr ||
        attr->attr.max_sge > shm.head->conf.max_sge) {
        return FAIL_WITH(EINVAL);
    }
    srq = proc_is_forked() ? NULL : calloc(1, sizeof(*srq));
    if (!srq) {
        return FAIL_WITH(ENOMEM);
    }
    if (attr->attr.max_sge == 0) {
        attr->attr.max_sge = 1;
    }
    srq->srq.context = ctx;
    srq->srq.srq_context = attr->srq_context;
    srq->srq.pd = attr->pd;
    err = make_srq(srq, attr);
    if (err) {
        free(srq);
        return FAIL_WITH(err);
    }
    srq->srq.handle = srq->index;
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    pd_use(attr->pd, 1);
    return &srq->srq;
}

HCA_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    struct ibv_srq_init_attr_ex attr = {
        .srq_context = init->srq_context,
        .attr = init->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_PD,
        .pd = pd,
    };
    struct ibv_srq *srq;

    attr.attr.srq_limit = 0;
    srq = srq_create_ex(pd->context, &attr);
    if (srq) {
        init->attr.max_wr = attr.attr.max_wr;
        init->attr.max_sge = attr.attr.max_sge;
    }
    return srq;
}

static int resize(struct shm_srq *s, uint32_t max_wr)
{
    struct shm_rq next;
    int err = rq_make(&next, max_wr, s->max_sge);
    bool fits;
    struct shm_rq old;

    if (err) {
        return -err;
    }
    lock_take(&s->lock);
    fits = atomic_load(&s->rq.held) <= max_wr;
    old = fits ? s->rq : next;
    if (fits) {
        for (uint64_t i = s->rq.head; i != s->rq.tail; i++) {
            memcpy(shm_at(&next.ring, i), shm_at(&s->rq.ring, i), s->rq.ring.stride);
        }
        s->rq.ring = next.ring;
    }
    lock_drop(&s->lock);
    grace_wait();
    ring_free(&old.ring, proc_self);
    return fits ? 0 : EINVAL;
}

HCA_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
    struct shm_srq *s = &shm.srqs[container_of(ibsrq, struct hca_srq, srq)->index];
    int err = 0;

    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) {
        return EINVAL;
    }
    if (mask & IBV_SRQ_MAX_WR) {
        if (attr->max_wr < 1 || attr->max_wr > shm.head->conf.max_srq_wr) {
            return EINVAL;
        }
        err = resize(s, attr->max_wr);
    }
    if (!err && (mask & IBV_SRQ_LIMIT)) {
        if (attr->srq_limit > s->rq.ring.slots) {
            return EINVAL;
        }
        lock_take(&s->lock);
        s->limit = attr->srq_limit;
        lock_drop(&s->lock);
    }
    return err;
}

HCA_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    const struct shm_srq *s = &shm.srqs[container_of(ibsrq, struct hca_srq, srq)->index];

    attr->max_wr = s->rq.ring.slots;
    attr->max_sge = s->max_sge;
    attr->srq_limit = s->limit;
    return 0;
}

int srq_post(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct shm_srq *s = &shm.srqs[container_of(ibsrq, struct hca_srq, srq)->index];
    int err = proc_is_forked() ? EPERM : 0;

    if (err) {
        *bad = wr;
        return err;
    }
    err = rq_post(&s->rq, &s->lock, s->max_sge, wr, bad);
    pending_run();
    return err;
}

void srq_free(uint32_t index)
{
    struct shm_srq *s = &shm.srqs[index];

    lock_take(&s->lock);
    atomic_store(&s->number, 0);
    lock_drop(&s->lock);
    grace_wait();
    ring_free(&s->rq.ring, s->proc);
    shm_slot_put(&shm.head->srqs, index);
}

HCA_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct hca_srq *srq = container_of(ibsrq, struct hca_srq, srq);

    if (atomic_load(&srq->users)) {
        return EBUSY;
    }
    if (!proc_is_forked()) {
        chan_forget_element(shm.srqs[srq->index].ctx, (uintptr_t)ibsrq);
        srq_free(srq->index);
        hca_wait_acks(&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, &srq->async_events);
    }
    pd_use(ibsrq->pd, -1);
    free(srq);
    return 0;
}
