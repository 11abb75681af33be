#include "verbs/hca.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/chan.h"
#include "run/pending.h"

enum { POLLS_BEFORE_YIELD = 200, POLLS_WHEN_CROWDED = 4, RUBBISH = 0xdb };

static void free_slots(const struct shm_cqe *e)
{
    if (e->is_send) {
        check_polled(e->qp, e->sq_position);
        atomic_store_explicit(&shm.qps[e->qp].sq_free, e->sq_position + 1, memory_order_release);
    } else if (e->srq != SHM_NONE) {
        atomic_fetch_sub(&shm.srqs[e->srq].rq.held, 1);
    } else {
        atomic_fetch_sub(&shm.qps[e->qp].rq.held, 1);
    }
}

static void scramble_address(struct shm_cqe *e)
{
    memset(&e->src_qp, RUBBISH, sizeof(e->src_qp));
    memset(&e->pkey_index, RUBBISH, sizeof(e->pkey_index));
    memset(&e->slid, RUBBISH, sizeof(e->slid));
    e->sl = e->dlid_path_bits = RUBBISH;
}

/* Fills the fields of a completion that are undefined: those of an error always, the others in
   adversarial mode. */
static void scramble(struct shm_cqe *e)
{
    bool is_error = e->status != IBV_WC_SUCCESS;

    if (!is_error && !shm.head->conf.adversarial) {
        return;
    }
    if (is_error || e->is_send || shm.qps[e->qp].type != IBV_QPT_UD) {
        scramble_address(e);
    }
    if (is_error || !(e->wc_flags & IBV_WC_WITH_IMM)) {
        memset(&e->imm, RUBBISH, sizeof(e->imm));
    }
    if (is_error || e->opcode == IBV_WC_SEND || e->opcode == IBV_WC_RDMA_WRITE) {
        memset(&e->byte_len, RUBBISH, sizeof(e->byte_len));
    }
    if (is_error) {
        memset(&e->opcode, RUBBISH, sizeof(e->opcode));
        memset(&e->wc_flags, RUBBISH, sizeof(e->wc_flags));
    }
}

static bool take(struct shm_cq *q, struct shm_cqe *e)
{
    bool found;

    if (atomic_load_explicit(&q->tail, memory_order_acquire) ==
        atomic_load_explicit(&q->head, memory_order_relaxed)) {
        return false;
    }
    lock_take(&q->lock);
    found = q->tail != q->head;
    if (found) {
        memcpy(e, shm_at(&q->ring, q->head), sizeof(*e));
        atomic_store_explicit(&q->head, q->head + 1, memory_order_relaxed);
        free_slots(e);
        scramble(e);
    }
    lock_drop(&q->lock);
    return found;
}

static void count_still(void)
{
    struct shm_proc *p = &shm.procs[proc_self];
    uint64_t moves = atomic_load(&shm.head->moves);

    if (atomic_exchange(&p->still_since, moves) != moves) {
        atomic_store(&p->still, 0);
    }
    atomic_fetch_add(&p->still, 1);
}

HCA_EXPORT void softhca_stalls_end(void)
{
    atomic_store(&shm.head->moves, 0);
}

void cq_moved(void)
{
    uint64_t moves = atomic_load(&shm.head->moves), least = UINT64_MAX;
    uint64_t longest = atomic_load(&shm.head->stall);

    if (moves == 0) {
        return;
    }
    for (uint32_t i = 0; i < atomic_load(&shm.head->procs.high); i++) {
        struct shm_proc *p = &shm.procs[i];
        uint64_t since = atomic_load(&p->still_since);
        uint64_t still = since == moves ? atomic_load(&p->still) : 0;

        if (atomic_load(&p->pid) != 0 && since != 0 && moves > 1 && still < least) {
            least = still;
        }
    }
    while (least != UINT64_MAX && least > longest &&
           !atomic_compare_exchange_weak(&shm.head->stall, &longest, least)) {
    }
    atomic_fetch_add(&shm.head->moves, 1);
}

static void idle(void)
{
    static __thread uint32_t empty;
    static __thread uint32_t cores;
    uint32_t limit;

    if (shm.head->conf.stalls) {
        count_still();
    }

    if (cores == 0) {
        cpu_set_t set;

        cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
    }
    pending_run();
    limit = atomic_load_explicit(&shm.head->live, memory_order_relaxed) > cores
                ? POLLS_WHEN_CROWDED
                : POLLS_BEFORE_YIELD;
    if (++empty >= limit) {
        empty = 0;
        sched_yield();
    }
}

/* The extended way to poll: one completion at a time, read field by field. */
static struct hca_cq *ex_cq(struct ibv_cq_ex *ex)
{
    return container_of(ex, struct hca_cq, ex);
}

static int take_next(struct hca_cq *cq)
{
    if (!take(&shm.cqs[cq->index], &cq->current)) {
        return ENOENT;
    }
    cq->ex.wr_id = cq->current.wr_id;
    cq->ex.status = (enum ibv_wc_status)cq->current.status;
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct hca_cq *cq = ex_cq(ex);
    int err;

    if (attr && attr->comp_mask) {
        return EINVAL;
    }
    if (take_next(cq) == 0) {
        return 0;
    }
    idle();
    err = take_next(cq);
    return err && shm.cqs[cq->index].overrun ? EIO : err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return take_next(ex_cq(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
}

#define READER(name, type, field)                                                                  \
    static type read_##name(struct ibv_cq_ex *ex)                                                  \
    {                                                                                              \
        return (type)ex_cq(ex)->current.field;                                                     \
    }
READER(opcode, enum ibv_wc_opcode, opcode)
READER(vendor_err, uint32_t, vendor_err)
READER(byte_len, uint32_t, byte_len)
READER(imm_data, __be32, imm)
READER(qp_num, uint32_t, qp_num)
READER(src_qp, uint32_t, src_qp)
READER(wc_flags, unsigned int, wc_flags)
READER(slid, uint32_t, slid)
READER(sl, uint8_t, sl)
READER(dlid_path_bits, uint8_t, dlid_path_bits)
READER(completion_ts, uint64_t, stamp)

static void set_poll_ops(struct hca_cq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ex;

    cq->wc_flags = (uint32_t)wc_flags;
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    ex->read_byte_len = wc_flags & IBV_WC_EX_WITH_BYTE_LEN ? read_byte_len : NULL;
    ex->read_imm_data = wc_flags & IBV_WC_EX_WITH_IMM ? read_imm_data : NULL;
    ex->read_qp_num = wc_flags & IBV_WC_EX_WITH_QP_NUM ? read_qp_num : NULL;
    ex->read_src_qp = wc_flags & IBV_WC_EX_WITH_SRC_QP ? read_src_qp : NULL;
    ex->read_slid = wc_flags & IBV_WC_EX_WITH_SLID ? read_slid : NULL;
    ex->read_sl = wc_flags & IBV_WC_EX_WITH_SL ? read_sl : NULL;
    ex->read_dlid_path_bits = wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS ? read_dlid_path_bits : NULL;
    ex->read_completion_ts =
        wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP ? read_completion_ts : NULL;
}

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
    set_poll_ops(cq, attr->wc_flags);
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

        is_wanted = e->solicited || e->status != IBV_WC_SUCCESS;
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

void cq_push(uint32_t index, const struct shm_cqe *e)
{
    struct shm_cq *q = &shm.cqs[index];
    bool is_over = false;

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
            (armed == ARM_SOLICITED && (e->solicited || e->status != IBV_WC_SUCCESS))) {
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

static void fill_wc(const struct shm_cqe *e, struct ibv_wc *wc)
{
    wc->wr_id = e->wr_id;
    wc->status = (enum ibv_wc_status)e->status;
    wc->vendor_err = e->vendor_err;
    wc->qp_num = e->qp_num;
    wc->opcode = (enum ibv_wc_opcode)e->opcode;
    wc->byte_len = e->byte_len;
    wc->imm_data = e->imm;
    wc->src_qp = e->src_qp;
    wc->wc_flags = e->wc_flags;
    wc->pkey_index = e->pkey_index;
    wc->slid = e->slid;
    wc->sl = e->sl;
    wc->dlid_path_bits = e->dlid_path_bits;
}

static int take_some(struct shm_cq *q, int n, struct ibv_wc *wc)
{
    struct shm_cqe e;
    int got = 0;

    while (got < n && take(q, &e)) {
        fill_wc(&e, &wc[got++]);
    }
    return got;
}

int cq_poll(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
    struct shm_cq *q = &shm.cqs[container_of(ibcq, struct hca_cq, cq)->index];
    int got;

    if (n < 0 || proc_is_forked()) {
        return -1;
    }
    got = take_some(q, n, wc);
    if (got == 0) {
        idle();
        got = take_some(q, n, wc);
    }
    return got == 0 && q->overrun ? -1 : got;
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
