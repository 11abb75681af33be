#include "receive.h"

#include "chan.h"
#include "mr.h"

static void take_entry(struct shm_rq *rq, uint32_t proc, uint32_t pd, struct receive *r)
{
    const struct shm_rwqe *w = shm_at(&rq->ring, rq->head);
    r->wr_id = w->wr_id;
    r->bad_key = false;
    pieces_clear(&r->to, proc);
    for (uint32_t i = 0; i < w->nsge; i++) {
        void *where = NULL;
        if (w->sge[i].length == 0) {
            continue;
        }
        if (!mr_translate(w->sge[i].lkey, proc, pd, w->sge[i].addr, w->sge[i].length,
                          IBV_ACCESS_LOCAL_WRITE, &where)) {
            r->bad_key = true;
        }
        pieces_add(&r->to, where, w->sge[i].length);
    }
    rq->head++;
}

static bool take_shared(struct shm_srq *s, struct receive *r)
{
    lock_take(&s->lock);
    bool found = s->number && s->rq.head != s->rq.tail;
    bool is_low = false;
    if (found) {
        take_entry(&s->rq, s->proc, s->pd, r);
        is_low = s->limit && s->rq.tail - s->rq.head < s->limit;
        if (is_low) {
            s->limit = 0;
        }
    }
    lock_drop(&s->lock);
    if (is_low) {
        chan_signal_async(s->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, s->user, 0);
    }
    return found;
}

bool receive_take(uint32_t index, struct receive *r)
{
    struct shm_qp *qp = &shm.qps[index];
    r->qp = index;
    r->srq = qp->srq;
    if (qp->srq != SHM_NONE) {
        return take_shared(&shm.srqs[qp->srq], r);
    }
    lock_take(&qp->rq_lock);
    bool found = qp->number && qp->rq.head != qp->rq.tail;
    if (found) {
        take_entry(&qp->rq, qp->proc, qp->pd, r);
    }
    lock_drop(&qp->rq_lock);
    return found;
}

bool receive_is_posted(uint32_t index)
{
    const struct shm_qp *qp = &shm.qps[index];
    const struct shm_rq *rq = qp->srq != SHM_NONE ? &shm.srqs[qp->srq].rq : &qp->rq;
    return rq->head != rq->tail;
}

void receive_fill(const struct receive *r, struct shm_cqe *e)
{
    const struct shm_qp *qp = &shm.qps[r->qp];
    *e = (struct shm_cqe){
        .wr_id = r->wr_id,
        .qp_num = qp->number,
        .qp = r->qp,
        .srq = r->srq,
        .opcode = IBV_WC_RECV,
        .stamp = shm.head->timed ? shm_now() : 0,
    };
}
