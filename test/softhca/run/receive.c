/* Both ends of a message in memory: the request's pieces, and the receive that takes it. */
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
    r->resets = atomic_load(&qp->resets);
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
        .wc = {.wr_id = r->wr_id, .qp_num = qp->number, .opcode = IBV_WC_RECV},
        .qp = r->qp,
        .srq = r->srq,
        .resets = r->resets,
    };
}

bool exec_gather(const struct shm_qp *qp, struct shm_wqe *wqe, uint32_t access, struct pieces *p)
{
    pieces_clear(p, wqe->inlined ? SHM_NONE : qp->proc);
    if (wqe->inlined) {
        pieces_add(p, wqe->sge, wqe->length);
        return true;
    }
    for (uint32_t i = 0; i < wqe->nsge; i++) {
        const struct ibv_sge *s = &wqe->sge[i];
        void *where;

        if (s->length == 0) {
            continue;
        }
        if (!mr_translate(s->lkey, qp->proc, qp->pd, s->addr, s->length, access, &where)) {
            wqe->status = IBV_WC_LOC_PROT_ERR;
            return false;
        }
        pieces_add(p, where, s->length);
    }
    return true;
}

void exec_deliver(struct run *run, struct shm_wqe *wqe, struct shm_cqe *e)
{
    uint32_t cq = shm.qps[e->qp].recv_cq;

    e->stamp = wqe->t_recv ? wqe->t_recv : e->stamp;
    if (e->wc.status != IBV_WC_SUCCESS) { /* the flush of the others follows at once */
        run->receive_all(run);
        cq_push(cq, e);
    } else if (wqe->t_recv > wqe->t_land ||
               (shm.head->timed && run->qp->sq_received != run->qp->sq_landed)) {
        wqe->rx = *e; /* also behind an earlier one that is to come late: their order holds */
        wqe->rx_cq = cq;
    } else {
        cq_push(cq, e);
    }
}
