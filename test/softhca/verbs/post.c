#include "verbs/wr.h"

#include <string.h>

#include "verbs/ah.h"
#include "verbs/check.h"
#include "run/pending.h"
#include "verbs/qp.h"
#include "run/run.h"
#include "verbs/srq.h"

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
    if (wr->opcode >= sizeof(supported) || !(supported[wr->opcode] & 1u << s->type)) {
        return EINVAL;
    }
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > s->attr.cap.max_send_sge ||
        wr->send_flags & ~(unsigned int)SEND_FLAGS) {
        return EINVAL;
    }
    bool reads = is_atomic(wr->opcode) || wr->opcode == IBV_WR_RDMA_READ;
    return reads && (wr->send_flags & IBV_SEND_INLINE) ? EINVAL : 0;
}

static int fill_data(const struct shm_qp *s, const struct ibv_send_wr *wr, struct shm_wqe *w)
{
    uint64_t length = 0;
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
    char *to = (char *)w->sge;
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

int post_one(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
    struct shm_qp *s = &shm.qps[qp->index];
    int err = check_request(s, wr);
    if (err) {
        return err;
    }
    if (s->sq_tail - atomic_load_explicit(&s->sq_free, memory_order_acquire) >= s->sq.slots) {
        return ENOMEM;
    }
    struct shm_wqe *w = shm_at(&s->sq, s->sq_tail);
    w->wr_id = wr->wr_id;
    w->opcode = wr->opcode;
    w->flags = wr->send_flags;
    w->imm = wr->imm_data;
    w->timed = w->early = w->ahead = 0;
    w->t_land = w->t_recv = w->t_done = 0;
    w->rx_cq = SHM_NONE;
    err = fill_target(qp, wr, w);
    err = err ? err : fill_data(s, wr, w);
    if (!err) {
        check_posted(s, w);
        s->sq_tail++;
    }
    return err;
}

static int check_sending_state(const struct shm_qp *s)
{
    uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
    return state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL : 0;
}

int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct hca_qp *qp = container_of(ibqp, struct hca_qp, qp);
    struct shm_qp *s = &shm.qps[qp->index];
    struct run run;
    int err = proc_is_forked() ? EPERM : check_sending_state(s);
    if (err) {
        *bad = wr;
        return err;
    }
    section_enter();
    lock_take(&s->sq_lock);
    for (; wr; wr = wr->next) {
        err = post_one(qp, wr);
        if (err) {
            *bad = wr;
            break;
        }
    }
    run_locked(&run, qp->index);
    lock_drop(&s->sq_lock);
    run_after(&run);
    section_leave();
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
    lock_take(&s->rq_lock);
    for (; wr; wr = wr->next) {
        err = s->rq.ring.slots ? rq_put(&s->rq, s->attr.cap.max_recv_sge, wr) : ENOMEM;
        if (err) {
            *bad = wr;
            break;
        }
    }
    lock_drop(&s->rq_lock);
    if (atomic_load(&s->state) == IBV_QPS_ERR) {
        qp_flush_receives(qp->index);
    }
    pending_run();
    return err;
}
