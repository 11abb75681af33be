#include "run/run.h"

#include "fault/fault.h"
#include "shm/chan.h"
#include "shm/life.h"
#include "shm/shm.h"
#include "verbs/hca.h"
#include "run/pending.h"
#include "wire/wire.h"

enum {
    RNR_FOREVER = 7,
    NO_ROOM_NS = 100000,
    LONG_BYTES = 32768,
    ADVERSARIAL_US = 50 /* without --defer */
};

static bool is_time(struct shm_qp *qp, uint64_t when, uint64_t now)
{
    if (when <= now) {
        return true;
    }
    pending_due_by(qp, when);
    return false;
}

static bool is_fenced(const struct shm_qp *qp, const struct shm_wqe *wqe, uint64_t position)
{
    return (wqe->flags & IBV_SEND_FENCE) && qp->sq_done != position;
}

/* Puts what was posted on the wire: it leaves in order, whenever its forerunners land. */
static void start(struct run *run, uint64_t now)
{
    struct shm_qp *qp = run->qp;

    if (qp->sq_started < qp->sq_landed) {
        qp->sq_started = qp->sq_landed;
    }
    while (qp->sq_started != qp->sq_tail && atomic_load(&qp->state) == IBV_QPS_RTS) {
        struct shm_wqe *wqe = shm_at(&qp->sq, qp->sq_started);

        if (is_fenced(qp, wqe, qp->sq_started)) {
            return;
        }
        if (!wire_start(run->index, wqe, now)) {
            pending_due_by(qp, now + NO_ROOM_NS);
            return;
        }
        wqe->timed = WQE_ON_WIRE;
        wqe->posted = now;
        qp->sq_started++;
    }
}

/* Bytes of a long write arrive while it flows, so that the CPU's work does not come all at the end.
   Returns when to look again. */
static uint64_t go_ahead(struct run *run, struct shm_wqe *wqe, uint64_t now, uint64_t end)
{
    const struct shm_conf *conf = &shm.head->conf;
    uint64_t half;

    if (wqe->early || wqe->length < LONG_BYTES || end == TIME_NEVER || conf->defer_us ||
        conf->adversarial) {
        return end;
    }
    half = wqe->posted + (end > wqe->posted ? end - wqe->posted : 0) / 2;
    if (now < half) {
        return half;
    }
    wqe->early = 1;
    exec_ahead(run, wqe);
    return end;
}

/* Deferred mode: random delays, with a wire or without. */
static void delay_times(struct wire_times *times)
{
    const struct shm_conf *conf = &shm.head->conf;
    /* Without delays no write would wait for another. */
    bool swaps = (conf->swap || conf->scatter) && !shm.head->wired;
    uint64_t longest, delay;

    if (!conf->defer_us && !conf->adversarial && !swaps) {
        return;
    }
    longest = (conf->defer_us ? conf->defer_us : ADVERSARIAL_US) * 1000ull;
    delay = shm_random(longest);
    times->land += delay;
    times->recv = times->land;
    times->done += delay + shm_random(longest);
    if (conf->adversarial) {
        times->recv += shm_random(times->done - times->land + 1);
    }
}

/* False: the request has not arrived, and it is not known when it will. */
static bool set_times(struct run *run, struct shm_wqe *wqe, uint64_t now)
{
    struct wire_times t = {now, now, now};

    if (wqe->timed == WQE_TIMED) {
        return true;
    }
    if (wqe->timed == WQE_NOT_TIMED && shm.head->wired) {
        return false; /* no room on the wire yet, or SQD */
    }
    if (wqe->timed == WQE_ON_WIRE && !wire_look(run->index, wqe, now, &t)) {
        pending_due_by(run->qp, go_ahead(run, wqe, now, t.land));
        return false;
    }
    delay_times(&t);
    wqe->t_land = t.land;
    wqe->t_recv = t.recv;
    wqe->t_done = t.done;
    wqe->timed = WQE_TIMED;
    return true;
}

static uint64_t ack_timeout(const struct shm_qp *qp)
{
    return qp->attr.timeout ? 4096ull << qp->attr.timeout : TIME_NEVER;
}

/* False: the request gets another try at `retry_at`. */
static bool give_up(struct run *run, struct shm_wqe *wqe, enum verdict verdict, uint64_t now)
{
    struct shm_qp *qp = run->qp;
    uint64_t pause;

    if (verdict == VERDICT_LOST) {
        if (qp->type != IBV_QPT_RC) {
            wqe->status = IBV_WC_SUCCESS; /* nobody tells the source */
            return true;
        }
        pause = ack_timeout(qp);
        if (qp->losses++ > qp->attr.retry_cnt) {
            wqe->status = IBV_WC_RETRY_EXC_ERR;
            return true;
        }
    } else {
        pause = run->rnr_wait;
        if (qp->attr.rnr_retry != RNR_FOREVER && qp->rnr_waits++ >= qp->attr.rnr_retry) {
            wqe->status = IBV_WC_RNR_RETRY_EXC_ERR;
            return true;
        }
    }
    wqe->t_recv = wqe->t_done = 0; /* the way there and back was for nothing */
    qp->retry_at = pause == TIME_NEVER ? TIME_NEVER : now + pause;
    return false;
}

/* The last loss is only known after its timeout. */
static bool is_exhausted(const struct shm_qp *qp)
{
    return qp->losses > qp->attr.retry_cnt && qp->type == IBV_QPT_RC;
}

static void fail(struct run *run)
{
    struct shm_qp *qp = run->qp;

    if (qp->type == IBV_QPT_RC) { /* receives are flushed when all requests have completed */
        atomic_store(&qp->state, IBV_QPS_ERR);
    } else {
        uint32_t rts = IBV_QPS_RTS;

        atomic_compare_exchange_strong(&qp->state, &rts, IBV_QPS_SQE);
    }
}

/* True when the request at sq_landed has landed. */
static bool land(struct run *run, struct shm_wqe *wqe, uint64_t now)
{
    struct shm_qp *qp = run->qp;
    uint32_t state = atomic_load(&qp->state);
    uint64_t at;
    enum verdict verdict;

    if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
        wqe->status = IBV_WC_WR_FLUSH_ERR;
        wqe->t_recv = wqe->t_done = 0;
        wqe->rx_cq = SHM_NONE;
        if (wqe->timed == WQE_ON_WIRE) {
            wire_forget(run->index, wqe);
        }
        return true;
    }
    if (state != IBV_QPS_RTS && !(state == IBV_QPS_SQD && qp->losses + qp->rnr_waits)) {
        return false;
    }
    if (is_fenced(qp, wqe, qp->sq_landed) || (now && !set_times(run, wqe, now))) {
        return false;
    }
    if (!qp->is_held && atomic_load_explicit(&shm.head->faults, memory_order_relaxed)) {
        uint64_t delay = fault_delay(qp);

        qp->is_held = 1;
        qp->retry_at = delay ? shm_now() + delay : 0;
        if (delay) {
            wqe->t_recv = wqe->t_done = 0; /* the model does not know about it */
        }
    }
    at = wqe->t_land > qp->retry_at ? wqe->t_land : qp->retry_at;
    if (at && !is_time(qp, at, now ? now : shm_now())) {
        if (shm.head->conf.adversarial && !wqe->early) {
            wqe->early = 1;
            exec_early(run, wqe);
        }
        return false;
    }
    verdict = VERDICT_LOST;
    if (!is_exhausted(qp)) {
        wqe->status = IBV_WC_SUCCESS;
        check_landing(qp, wqe);
        verdict = qp->type == IBV_QPT_UD ? exec_datagram(run, wqe) : exec_connected(run, wqe);
    }
    if (verdict != VERDICT_LANDED && !give_up(run, wqe, verdict, now ? now : shm_now())) {
        pending_due_by(qp, qp->retry_at);
        return false;
    }
    qp->retry_at = 0;
    qp->losses = qp->rnr_waits = qp->is_held = 0;
    if (wqe->status != IBV_WC_SUCCESS) {
        fail(run);
    }
    return true;
}

static void complete(struct run *run, const struct shm_wqe *wqe)
{
    static const uint8_t opcodes[] = {
        [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
        [IBV_WR_SEND] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
        [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
        [IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
        [IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
        [IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
    };
    struct shm_qp *qp = run->qp;
    bool is_signaled = qp->sig_all || (wqe->flags & IBV_SEND_SIGNALED);
    struct shm_cqe e;

    if (!is_signaled && wqe->status == IBV_WC_SUCCESS) {
        return;
    }
    e = (struct shm_cqe){
        .wc = {.wr_id = wqe->wr_id,
               .status = wqe->status,
               .opcode = opcodes[wqe->opcode],
               .byte_len = wqe->length,
               .qp_num = qp->number},
        .sq_position = qp->sq_done,
        .stamp = wqe->t_done,
        .is_send = 1,
        .qp = run->index,
        .srq = SHM_NONE,
    };
    cq_push(qp->send_cq, &e);
}

static void run_received(struct run *run, uint64_t now)
{
    struct shm_qp *qp = run->qp;

    while (qp->sq_received != qp->sq_landed) {
        struct shm_wqe *wqe = shm_at(&qp->sq, qp->sq_received);

        if (wqe->rx_cq != SHM_NONE) {
            if (!is_time(qp, wqe->t_recv, now)) {
                return;
            }
            uint32_t cq = wqe->rx_cq;

            wqe->rx_cq = SHM_NONE; /* first: should its source die here, it must not come twice */
            cq_push(cq, &wqe->rx);
        }
        qp->sq_received++;
    }
}

static void run_done(struct run *run, uint64_t now)
{
    struct shm_qp *qp = run->qp;

    while (qp->sq_done != qp->sq_received) {
        struct shm_wqe *wqe = shm_at(&qp->sq, qp->sq_done);

        if (wqe->t_done && !is_time(qp, wqe->t_done, now)) {
            return;
        }
        if (wqe->status == IBV_WC_SUCCESS && exec_is_late(wqe)) {
            exec_bring_late(run, wqe);
            if (wqe->status != IBV_WC_SUCCESS) {
                fail(run);
            }
        }
        complete(run, wqe);
        qp->sq_done++;
    }
}

static void tell_drained(struct shm_qp *qp)
{
    if (qp->attr.en_sqd_async_notify && qp->state == IBV_QPS_SQD && qp->sq_done == qp->sq_landed &&
        qp->losses + qp->rnr_waits == 0) {
        qp->attr.en_sqd_async_notify = 0;
        chan_signal_async(qp->ctx, IBV_EVENT_SQ_DRAINED, qp->user, 0);
    }
}

static void receive_all(struct run *run)
{
    run_received(run, UINT64_MAX);
}

/* Whoever ran the queue died at it. Of a dead owner nothing comes any more; what a living one's
   request has completed already does not complete again. */
static void take_up(struct run *run)
{
    struct shm_qp *qp = run->qp;
    uint64_t sent;

    if (!proc_is_alive(qp->proc)) {
        atomic_store(&qp->state, IBV_QPS_ERR);
    } else {
        sent = cq_mend(qp->send_cq, run->index);
        sent = sent > qp->sq_free ? sent : qp->sq_free;
        if (sent > qp->sq_done && sent <= qp->sq_received) {
            qp->sq_done = sent;
        }
    }
    if (qp->peer != SHM_NONE && shm.qps[qp->peer].number) {
        cq_mend(shm.qps[qp->peer].recv_cq, SHM_NONE);
    }
    qp->sq_lock.broken = 0;
}

void run_locked(struct run *run, uint32_t index)
{
    struct shm_qp *qp = &shm.qps[index];
    uint64_t now = shm.head->timed ? shm_now() : 0;
    uint64_t before;

    *run = (struct run){.index = index, .qp = qp, .hurt = SHM_NONE, .receive_all = receive_all};
    if (!atomic_load_explicit(&qp->number, memory_order_relaxed)) {
        return;
    }
    if (qp->sq_lock.broken) {
        take_up(run);
    }
    pending_begin(qp);
    do { /* again when what is done has let a fenced request go */
        before = qp->sq_done;
        if (shm.head->wired) {
            start(run, now);
        }
        while (qp->sq_landed != qp->sq_tail && land(run, shm_at(&qp->sq, qp->sq_landed), now)) {
            qp->sq_landed++;
            if (!now) {
                run_received(run, 0);
                run_done(run, 0);
            }
        }
        if ((shm.head->conf.swap || shm.head->conf.scatter) &&
            atomic_load(&qp->state) == IBV_QPS_RTS) {
            exec_swap(run, shm.head->wired ? qp->sq_started : qp->sq_tail);
        }
        run_received(run, now);
        run_done(run, now);
    } while (now && qp->sq_done != before && qp->sq_landed != qp->sq_tail);
    tell_drained(qp);
    pending_end(qp);
    pending_update(index, qp->sq_done != qp->sq_tail);
    if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR &&
        qp->sq_done == qp->sq_tail) {
        qp_flush_receives(index);
    }
}

void run_after(struct run *run)
{
    if (run->hurt != SHM_NONE) {
        uint32_t hurt = run->hurt;
        struct run other;

        qp_flush_receives(hurt);
        lock_take(&shm.qps[hurt].sq_lock);
        run_locked(&other, hurt);
        lock_drop(&shm.qps[hurt].sq_lock);
    }
}

void run_queue(uint32_t index)
{
    struct run run;

    section_enter();
    lock_take(&shm.qps[index].sq_lock);
    run_locked(&run, index);
    lock_drop(&shm.qps[index].sq_lock);
    run_after(&run);
    section_leave();
}

/* The index may be of a moment ago, and the queue pair freed since: its place, with the lock, is made
   anew without regard to anybody, so the lock is touched only where this section keeps it there. */
void run_try(uint32_t index)
{
    struct run run;

    section_enter();
    if (atomic_load(&shm.qps[index].number) && lock_try_again(&shm.qps[index].sq_lock)) {
        run_locked(&run, index);
        lock_drop(&shm.qps[index].sq_lock);
        run_after(&run);
    }
    section_leave();
}
