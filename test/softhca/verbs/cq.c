/* Completion queues: making them, and what comes into them. */
#include "verbs/hca.h"

#include <stdlib.h>
#include <string.h>

#include "shm/chan.h"
#include "run/pending.h"

static int make_shared(struct hca_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
    struct shm_ring ring = {0, sizeof(struct shm_cqe), attr->cqe};
    int err = shm_slot_get(&shm.head->cqs, &cq->index);
    struct shm_cq *q;

    if (err) {
        return err;
    }
    err = ring_make(&ring);
    if (err) {
        shm_slot_put(&shm.head->cqs, cq->index);
        return err;
    }
    q = &shm.cqs[cq->index];
    q->ctx = to_ctx(cq->cq.context)->chan;
    q->chan = attr->channel ? container_of(attr->channel, struct hca_chan, chan)->index : SHM_NONE;
    q->user = (uintptr_t)&cq->cq;
    q->ring = ring;
    q->head = q->tail = 0;
    q->armed = ARM_NONE;
    q->overrun = 0;
    q->events = 0;
    q->next = SHM_NONE;
    q->ignore_overrun = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
                        (attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
    q->stamped = (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0;
    q->generation++;
    atomic_store(&q->number, q->generation << 16 | cq->index);
    return 0;
}

static int check_attr(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
    const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

    if (attr->cqe < 1 || attr->cqe > shm.head->conf.max_cqe ||
        attr->comp_vector >= (uint32_t)ctx->num_comp_vectors) {
        return EINVAL;
    }
    if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
        return EOPNOTSUPP;
    }
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~flags)) {
        return EOPNOTSUPP;
    }
    return attr->wc_flags & ~(uint64_t)CQ_WC_FLAGS ? EOPNOTSUPP : 0;
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
    int err = proc_is_forked() ? EPERM : check_attr(ctx, attr);
    struct hca_cq *cq = err ? NULL : calloc(1, sizeof(*cq));

    if (!cq) {
        return FAIL_WITH(err ? err : ENOMEM);
    }
    cq->cq.context = ctx;
    cq->cq.channel = attr->channel;
    cq->cq.cq_context = attr->cq_context;
    err = -make_shared(cq, attr);
    if (err) {
        free(cq);
        return FAIL_WITH(err);
    }
    cq->cq.cqe = (int)attr->cqe;
    cq->cq.handle = cq->index;
    pthread_mutex_init(&cq->cq.mutex, NULL);
    pthread_cond_init(&cq->cq.cond, NULL);
    cq_set_poll_ops(cq, attr->wc_flags);
    if (attr->channel) {
        pthread_mutex_lock(&ctx->mutex);
        attr->channel->refcnt++;
        pthread_mutex_unlock(&ctx->mutex);
    }
    return &cq->ex;
}

HCA_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
                                        struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq_init_attr_ex attr = {.cq_context = cq_context, .channel = channel};
    struct ibv_cq_ex *cq;

    if (cqe < 1 || vector < 0) {
        return FAIL_WITH(EINVAL);
    }
    attr.cqe = (uint32_t)cqe;
    attr.comp_vector = (uint32_t)vector;
    cq = cq_create_ex(ctx, &attr);
    return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

HCA_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    struct shm_cq *q = &shm.cqs[container_of(cq, struct hca_cq, cq)->index];
    struct shm_ring ring = {0, sizeof(struct shm_cqe), (uint32_t)cqe};
    struct shm_ring old;
    int err;
    bool fits;

    if (cqe < 1 || (uint32_t)cqe > shm.head->conf.max_cqe) {
        return EINVAL;
    }
    err = ring_make(&ring);
    if (err) {
        return -err;
    }
    lock_take(&q->lock);
    fits = q->tail - q->head <= ring.slots;
    if (fits) {
        for (uint64_t i = q->head; i != q->tail; i++) {
            memcpy(shm_at(&ring, i), shm_at(&q->ring, i), sizeof(struct shm_cqe));
        }
        old = q->ring;
        q->ring = ring;
        cq->cqe = cqe;
    } else {
        old = ring;
    }
    lock_drop(&q->lock);
    ring_free(&old, proc_self);
    return fits ? 0 : EINVAL;
}

void cq_free(uint32_t index)
{
    struct shm_cq *q = &shm.cqs[index];

    lock_take(&q->lock);
    atomic_store(&q->number, 0);
    q->tail = q->head; /* a slot that a dead process had only just taken may name this queue */
    lock_drop(&q->lock);
    if (q->chan != SHM_NONE) {
        chan_forget_cq(q->chan, index);
    }
    grace_wait();
    ring_free(&q->ring, shm_slot_owner(&shm.head->cqs, index));
    shm_slot_put(&shm.head->cqs, index);
}

HCA_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct hca_cq *cq = container_of(ibcq, struct hca_cq, cq);

    if (atomic_load(&cq->users)) {
        return EBUSY;
    }
    if (!proc_is_forked()) {
        chan_forget_element(shm.cqs[cq->index].ctx, (uintptr_t)ibcq);
        cq_free(cq->index);
        hca_wait_acks(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, &cq->comp_events);
        hca_wait_acks(&ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, &cq->async_events);
    }
    if (ibcq->channel) {
        pthread_mutex_lock(&ibcq->context->mutex);
        ibcq->channel->refcnt--;
        pthread_mutex_unlock(&ibcq->context->mutex);
    }
    free(cq);
    return 0;
}

static void overrun(uint32_t index, struct shm_cq *q)
{
    uint32_t high;

    chan_signal_async(q->ctx, IBV_EVENT_CQ_ERR, q->user, 0);
    high = atomic_load(&shm.head->qps.high);
    for (uint32_t i = 0; i < high; i++) {
        struct shm_qp *qp = &shm.qps[i];

        if (qp->number && (qp->send_cq == index || qp->recv_cq == index)) {
            pending_break(i, IBV_EVENT_QP_FATAL);
        }
    }
}

/* Under the lock: an event for completions that came before the queue was armed. */
static void tell_waiting(struct shm_cq *q, uint32_t index)
{
    bool is_wanted = q->armed == ARM_NEXT;

    for (uint64_t i = q->head; i != q->tail && !is_wanted; i++) {
        const struct shm_cqe *e = shm_at(&q->ring, i);

        is_wanted = e->solicited || e->wc.status != IBV_WC_SUCCESS;
    }
    if (is_wanted && q->head != q->tail && q->chan != SHM_NONE) {
        chan_signal_cq(q->chan, index);
        q->armed = ARM_NONE;
    }
}

/* Under the lock, which a process may have had when it died. */
static void mend(struct shm_cq *q, uint32_t index)
{
    if (q->lock.broken) {
        if (q->armed != ARM_NONE) {
            tell_waiting(q, index);
        }
        q->lock.broken = 0;
    }
}

/* Its queue pair was reset while it was on its way. */
static bool is_forgotten(const struct shm_cqe *e)
{
    return !e->is_send && e->resets != atomic_load(&shm.qps[e->qp].resets);
}

void cq_push(uint32_t index, const struct shm_cqe *e)
{
    struct shm_cq *q = &shm.cqs[index];
    bool is_over = false;

    if (is_forgotten(e)) {
        if (e->srq != SHM_NONE) {
            atomic_fetch_sub(&shm.srqs[e->srq].rq.held, 1);
        }
        return;
    }
    lock_take(&q->lock);
    mend(q, index);
    if (q->number && q->tail - q->head >= q->ring.slots) {
        is_over = !q->ignore_overrun && !q->overrun;
        q->overrun = !q->ignore_overrun;
        q->head += q->ignore_overrun;
    }
    if (q->number && !q->overrun) {
        struct shm_cqe *there = shm_at(&q->ring, q->tail);
        uint32_t armed;

        memcpy(there, e, sizeof(*e));
        if (q->stamped && !there->stamp) {
            there->stamp = shm_now();
        }
        atomic_store_explicit(&q->tail, q->tail + 1, memory_order_release);
        armed = q->armed;
        if (armed == ARM_NEXT ||
            (armed == ARM_SOLICITED && (e->solicited || e->wc.status != IBV_WC_SUCCESS))) {
            if (q->chan != SHM_NONE) {
                chan_signal_cq(q->chan, index);
            }
            q->armed = ARM_NONE; /* last: it says that the event has been given */
        }
    }
    lock_drop(&q->lock);
    if (is_over) {
        overrun(index, q);
    }
}

uint64_t cq_mend(uint32_t index, uint32_t qp)
{
    struct shm_cq *q = &shm.cqs[index];
    uint64_t sent = 0;

    lock_take(&q->lock);
    mend(q, index);
    for (uint64_t i = q->head; i != q->tail; i++) {
        const struct shm_cqe *e = shm_at(&q->ring, i);

        if (e->qp == qp && e->is_send) {
            sent = e->sq_position + 1;
        }
    }
    lock_drop(&q->lock);
    return sent;
}

void cq_clean(uint32_t index, uint32_t qp)
{
    struct shm_cq *q = &shm.cqs[index];
    uint64_t keep;

    lock_take(&q->lock);
    keep = q->head;
    for (uint64_t i = q->head; i != q->tail; i++) {
        struct shm_cqe *e = shm_at(&q->ring, i);

        if (e->qp == qp) {
            if (!e->is_send && e->srq != SHM_NONE) {
                atomic_fetch_sub(&shm.srqs[e->srq].rq.held, 1);
            }
        } else {
            if (keep != i) {
                memcpy(shm_at(&q->ring, keep), e, sizeof(*e));
            }
            keep++;
        }
    }
    atomic_store(&q->tail, keep);
    lock_drop(&q->lock);
}

int cq_arm(struct ibv_cq *ibcq, int solicited_only)
{
    uint32_t index = container_of(ibcq, struct hca_cq, cq)->index;
    struct shm_cq *q = &shm.cqs[index];
    uint32_t want = solicited_only ? ARM_SOLICITED : ARM_NEXT;

    if (proc_is_forked()) {
        return EPERM;
    }
    pending_run();
    lock_take(&q->lock);
    if (q->armed < want) {
        q->armed = want;
    }
    mend(q, index);
    if (shm.head->conf.arm_waiting) {
        tell_waiting(q, index);
    }
    lock_drop(&q->lock);
    return 0;
}
