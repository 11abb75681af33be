/*
 * Posting, both ways: lists of work requests, and the builder ibv_wr_start .. ibv_wr_complete. The
 * builder has the send queue's lock from start to complete, as drivers do. Each request is queued
 * when the next one begins, and runs, all or none, at complete.
 */
#include "verbs/hca.h"

#include <stdlib.h>
#include <string.h>

#include "run/copy.h"
#include "run/pending.h"
#include "run/run.h"

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)

/* Which queue pairs know which request. */
static const uint8_t supported[] = {
    [IBV_WR_RDMA_WRITE] = RC | UC,
    [IBV_WR_RDMA_WRITE_WITH_IMM] = RC | UC,
    [IBV_WR_SEND] = RC | UC | UD,
    [IBV_WR_SEND_WITH_IMM] = RC | UC | UD,
    [IBV_WR_RDMA_READ] = RC,
    [IBV_WR_ATOMIC_CMP_AND_SWP] = RC,
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = RC,
};

enum { SEND_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE };

static bool is_atomic(uint32_t opcode)
{
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int check_request(const struct shm_qp *s, const struct ibv_send_wr *wr)
{
    bool reads;

    if (wr->opcode >= sizeof(supported) || !(supported[wr->opcode] & 1u << s->type)) {
        return EINVAL;
    }
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > s->attr.cap.max_send_sge ||
        wr->send_flags & ~(unsigned int)SEND_FLAGS) {
        return EINVAL;
    }
    reads = is_atomic(wr->opcode) || wr->opcode == IBV_WR_RDMA_READ;
    return reads && (wr->send_flags & IBV_SEND_INLINE) ? EINVAL : 0;
}

static int fill_data(const struct shm_qp *s, const struct ibv_send_wr *wr, struct shm_wqe *w)
{
    uint64_t length = 0;
    char *to;

    for (int i = 0; i < wr->num_sge; i++) {
        length += wr->sg_list[i].length;
    }
    if (length > UINT32_MAX || (is_atomic(wr->opcode) && length != sizeof(uint64_t))) {
        return EINVAL;
    }
    w->length = (uint32_t)length;
    w->inlined = (wr->send_flags & IBV_SEND_INLINE) != 0;
    w->nsge = (uint32_t)wr->num_sge;
    if (!w->inlined) {
        memcpy(w->sge, wr->sg_list, w->nsge * sizeof(w->sge[0]));
        return 0;
    }
    if (length > s->attr.cap.max_inline_data) {
        return EINVAL;
    }
    to = (char *)w->sge;
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        to += wr->sg_list[i].length;
    }
    return 0;
}

static int fill_target(struct hca_qp *qp, const struct ibv_send_wr *wr, struct shm_wqe *w)
{
    if (qp->qp.qp_type == IBV_QPT_UD) {
        if (!wr->wr.ud.ah || wr->wr.ud.ah->pd->context != qp->qp.context) {
            return EINVAL;
        }
        w->av = container_of(wr->wr.ud.ah, struct hca_ah, ah)->av;
        w->remote_qpn = wr->wr.ud.remote_qpn;
        w->remote_qkey = wr->wr.ud.remote_qkey;
    } else if (is_atomic(wr->opcode)) {
        w->raddr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
    } else {
        w->raddr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
    }
    return 0;
}

/* One request into the send queue, under its lock. 0 or an errno. */
static int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    struct shm_qp *s = &shm.qps[qp->index];
    int err = check_request(s, wr);
    struct shm_wqe *w;

    if (err) {
        return err;
    }
    if (s->sq_tail - atomic_load_explicit(&s->sq_free, memory_order_acquire) >= s->sq.slots) {
        return ENOMEM;
    }
    w = shm_at(&s->sq, s->sq_tail);
    w->wr_id = wr->wr_id;
    w->opcode = wr->opcode;
    w->flags = wr->send_flags;
    w->imm = wr->imm_data;
    w->timed = w->early = w->ahead = 0;
    w->scattered = 0;
    w->t_land = w->t_recv = w->t_done = 0;
    w->rx_cq = SHM_NONE;
    err = fill_target(qp, wr, w);
    err = err ? err : fill_data(s, wr, w);
    if (!err) {
        if (shm.head->conf.defer_us) {
            section_enter();
            check_posted(s, w);
            section_leave();
        }
        s->sq_tail++;
    }
    return err;
}

static int check_sending(const struct shm_qp *s)
{
    uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);

    return proc_is_forked()                                                          ? EPERM
           : state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL
                                                                                     : 0;
}

/* Runs what was queued, and drops the send queue's lock. */
static void run_and_unlock(uint32_t index)
{
    struct run run;

    section_enter();
    run_locked(&run, index);
    lock_drop(&shm.qps[index].sq_lock);
    run_after(&run);
    section_leave();
}

int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    struct shm_qp *s = &shm.qps[qp->index];
    int err = check_sending(s);

    if (err) {
        *bad = wr;
        return err;
    }
    if (shm.head->conf.stalls) {
        cq_moved();
    }
    lock_take(&s->sq_lock);
    for (; wr; wr = wr->next) {
        err = post_one(qp, wr);
        if (err) {
            *bad = wr;
            break;
        }
    }
    run_and_unlock(qp->index);
    return err;
}

int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    struct shm_qp *s = &shm.qps[qp->index];
    int err = proc_is_forked() ? EPERM : 0;

    if (err || ibqp->srq || atomic_load(&s->state) == IBV_QPS_RESET) {
        *bad = wr;
        return err ? err : EINVAL;
    }
    err = rq_post(&s->rq, &s->rq_lock, s->attr.cap.max_recv_sge, wr, bad);
    if (atomic_load(&s->state) == IBV_QPS_ERR) {
        qp_flush_receives(qp->index);
    }
    pending_run();
    return err;
}

struct hca_build {
    struct ibv_send_wr wr; /* not queued yet, if is_open */
    bool is_open;
    int err;
    uint64_t before; /* the queue's tail at start */
    struct ibv_sge sge[COPY_MAX_SGE];
    char bytes[]; /* copies of inline data: the program may reuse its buffer at once */
};

static struct hca_build *build_of(struct ibv_qp_ex *ex)
{
    return container_of(ex, struct hca_qp, ex)->build;
}

static void queue_open(struct ibv_qp_ex *ex)
{
    struct hca_build *b = build_of(ex);

    if (b->is_open && !b->err) {
        b->err = post_one(container_of(ex, struct hca_qp, ex), &b->wr);
    }
    b->is_open = false;
}

static struct ibv_send_wr *add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
    struct hca_build *b = build_of(ex);

    queue_open(ex);
    b->wr = (struct ibv_send_wr){
        .wr_id = ex->wr_id, .send_flags = ex->wr_flags, .opcode = opcode, .sg_list = b->sge};
    b->is_open = true;
    return &b->wr;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t compare,
                              uint64_t swap)
{
    struct ibv_send_wr *wr = add(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.remote_addr = raddr;
    wr->wr.atomic.compare_add = compare;
    wr->wr.atomic.swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t value)
{
    struct ibv_send_wr *wr = add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.remote_addr = raddr;
    wr->wr.atomic.compare_add = value;
}

static struct ibv_send_wr *add_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
                                    uint64_t raddr)
{
    struct ibv_send_wr *wr = add(ex, opcode);

    wr->wr.rdma.rkey = rkey;
    wr->wr.rdma.remote_addr = raddr;
    return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
    add_rdma(ex, IBV_WR_RDMA_READ, rkey, raddr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
    add_rdma(ex, IBV_WR_RDMA_WRITE, rkey, raddr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, __be32 imm)
{
    add_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, raddr)->imm_data = imm;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    add(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    add(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct ibv_send_wr *wr = &build_of(ex)->wr;

    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = qpn;
    wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
    struct hca_build *b = build_of(ex);

    if (!b->is_open || n > COPY_MAX_SGE) {
        b->err = b->err ? b->err : EINVAL;
        return;
    }
    memcpy(b->sge, list, n * sizeof(*list));
    b->wr.num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

    wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
    struct hca_build *b = build_of(ex);
    size_t most = container_of(ex, struct hca_qp, ex)->init.cap.max_inline_data, total = 0;

    for (size_t i = 0; i < n; i++) {
        if (list[i].length > most - total) {
            b->err = b->err ? b->err : EINVAL;
            return;
        }
        memcpy(b->bytes + total, list[i].addr, list[i].length);
        total += list[i].length;
    }
    b->wr.send_flags |= IBV_SEND_INLINE;
    wr_set_sge(ex, 0, (uintptr_t)b->bytes, (uint32_t)total);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf buf = {.addr = addr, .length = length};

    wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct hca_build *b = build_of(ex);
    struct shm_qp *s = &shm.qps[container_of(ex, struct hca_qp, ex)->index];

    b->is_open = false;
    b->err = check_sending(s);
    if (b->err != EPERM) {
        lock_take(&s->sq_lock);
        b->before = s->sq_tail;
    }
}

/* With an error, everything since the start is forgotten. */
static int wr_complete(struct ibv_qp_ex *ex)
{
    struct hca_build *b = build_of(ex);
    uint32_t index = container_of(ex, struct hca_qp, ex)->index;

    queue_open(ex);
    if (b->err == EPERM) { /* a forked child has no lock */
        return EINVAL;
    }
    if (b->err) {
        shm.qps[index].sq_tail = b->before;
    }
    run_and_unlock(index);
    return b->err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct hca_build *b = build_of(ex);

    b->err = b->err ? b->err : ECANCELED;
    wr_complete(ex);
}

static int set_ops(struct hca_qp *qp, uint64_t ops)
{
    const uint64_t ud = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    const uint64_t uc = ud | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    const uint64_t rc = uc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    struct ibv_qp_ex *ex = &qp->ex;
    enum ibv_qp_type type = qp->qp.qp_type;

    if (ops & ~(type == IBV_QPT_RC ? rc : type == IBV_QPT_UC ? uc : ud)) {
        return EOPNOTSUPP;
    }
    qp->build = calloc(1, sizeof(*qp->build) + qp->init.cap.max_inline_data);
    if (!qp->build) {
        return ENOMEM;
    }
#define OP(flag, name)                                                                             \
    if (ops & (flag)) {                                                                            \
        ex->name = name;                                                                           \
    }
    OP(IBV_QP_EX_WITH_SEND, wr_send)
    OP(IBV_QP_EX_WITH_SEND_WITH_IMM, wr_send_imm)
    OP(IBV_QP_EX_WITH_RDMA_WRITE, wr_rdma_write)
    OP(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, wr_rdma_write_imm)
    OP(IBV_QP_EX_WITH_RDMA_READ, wr_rdma_read)
    OP(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp)
    OP(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add)
#undef OP
    ex->wr_set_ud_addr = type == IBV_QPT_UD ? wr_set_ud_addr : NULL;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    return 0;
}

struct ibv_qp *wr_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *ibqp = qp_create_ex(ctx, attr);
    int err;

    if (!ibqp || !(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
        return ibqp;
    }
    err = set_ops(container_of(ibqp, struct hca_qp, qp), attr->send_ops_flags);
    if (err) {
        ibv_destroy_qp(ibqp);
        return FAIL_WITH(err);
    }
    return ibqp;
}
