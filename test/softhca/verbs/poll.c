/* Taking completions, by ibv_poll_cq and by the extended way. */
#include <sched.h>
#include <string.h>

#include "run/pending.h"
#include "verbs/hca.h"

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
    memset(&e->wc.src_qp, RUBBISH, sizeof(e->wc.src_qp));
    memset(&e->wc.pkey_index, RUBBISH, sizeof(e->wc.pkey_index));
    memset(&e->wc.slid, RUBBISH, sizeof(e->wc.slid));
    e->wc.sl = e->wc.dlid_path_bits = RUBBISH;
}

/* Fills the fields of a completion that are undefined: those of an error always, the others in
   adversarial mode. */
static void scramble(struct shm_cqe *e)
{
    bool is_error = e->wc.status != IBV_WC_SUCCESS;

    if (!is_error && !shm.head->conf.adversarial) {
        return;
    }
    if (is_error || e->is_send || shm.qps[e->qp].type != IBV_QPT_UD) {
        scramble_address(e);
    }
    if (is_error || !(e->wc.wc_flags & IBV_WC_WITH_IMM)) {
        memset(&e->wc.imm_data, RUBBISH, sizeof(e->wc.imm_data));
    }
    if (is_error || e->wc.opcode == IBV_WC_SEND || e->wc.opcode == IBV_WC_RDMA_WRITE) {
        memset(&e->wc.byte_len, RUBBISH, sizeof(e->wc.byte_len));
    }
    if (is_error) {
        memset(&e->wc.opcode, RUBBISH, sizeof(e->wc.opcode));
        memset(&e->wc.wc_flags, RUBBISH, sizeof(e->wc.wc_flags));
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
    cq->ex.wr_id = cq->current.wc.wr_id;
    cq->ex.status = cq->current.wc.status;
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
READER(opcode, enum ibv_wc_opcode, wc.opcode)
READER(vendor_err, uint32_t, wc.vendor_err)
READER(byte_len, uint32_t, wc.byte_len)
READER(imm_data, __be32, wc.imm_data)
READER(qp_num, uint32_t, wc.qp_num)
READER(src_qp, uint32_t, wc.src_qp)
READER(wc_flags, unsigned int, wc.wc_flags)
READER(slid, uint32_t, wc.slid)
READER(sl, uint8_t, wc.sl)
READER(dlid_path_bits, uint8_t, wc.dlid_path_bits)
READER(completion_ts, uint64_t, stamp)

void cq_set_poll_ops(struct hca_cq *cq, uint64_t wc_flags)
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

static int take_some(struct shm_cq *q, int n, struct ibv_wc *wc)
{
    struct shm_cqe e;
    int got = 0;

    while (got < n && take(q, &e)) {
        wc[got++] = e.wc;
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
