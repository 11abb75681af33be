#include "run/run.h"

#include "shm/chan.h"
#include "verbs/hca.h"

static void read_entry(struct shm_rq *rq, uint32_t proc, uint32_t pd, struct receive *r)
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
}

static bool take_shared(struct shm_srq *s, struct receive *r)
{
    bool found, is_low;

    lock_take(&s->lock);
    found = s->number && s->rq.head != s->rq.tail;
    is_low = false;
    if (found) {
        read_entry(&s->rq, s->proc, s->pd, r);
        s->rq.head++;
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

static bool visit_own(struct shm_qp *qp, struct receive *r, bool takes)
{
    bool found;

    lock_take(&qp->rq_lock);
    found = qp->number && qp->rq.head != qp->rq.tail;
    if (found) {
        read_entry(&qp->rq, qp->proc, qp->pd, r);
        qp->rq.head += takes;
    }
    lock_drop(&qp->rq_lock);
    return found;
}

bool receive_take(uint32_t index, struct receive *r)
{
    struct shm_qp *qp = &shm.qps[index];

    r->qp = index;
    r->srq = qp->srq;
    return qp->srq != SHM_NONE ? take_shared(&shm.srqs[qp->srq], r) : visit_own(qp, r, true);
}

bool receive_peek(uint32_t index, struct receive *r)
{
    struct shm_qp *qp = &shm.qps[index];

    return qp->srq == SHM_NONE && visit_own(qp, r, false);
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
    };
}
