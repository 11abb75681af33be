/* Requests of connected queue pairs: what the responder checks, in the order it checks it. */
#include "run/run.h"

#include <errno.h>
#include <string.h>

#include "shm/chan.h"
#include "shm/life.h"
#include "verbs/hca.h"
#include "fault/fault.h"

enum { PSN_MASK = 0xffffff, RUBBISH = 0xdb, RUBBISH_BYTES = 4096 };

#define MESSAGE_MAX (1ull << 31)

/* One request at its target. */
struct visit {
    struct run *run;
    struct shm_wqe *wqe;
    uint32_t peer_index;
    struct shm_qp *peer;
    bool is_late;
    struct pieces local;
};

/* The peer, if it is connected to us and listens. */
static bool find_peer(struct visit *v)
{
    struct shm_qp *qp = v->run->qp;
    struct shm_qp *peer;
    uint32_t state;
    bool listens;

    v->peer_index = qp_find(qp->attr.dest_qp_num);
    if (v->peer_index == SHM_NONE || qp->peer_port == SHM_NONE) {
        return false;
    }
    peer = v->peer = &shm.qps[v->peer_index];
    state = atomic_load_explicit(&peer->state, memory_order_acquire);
    listens = state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
              state == IBV_QPS_SQE;
    qp->peer = v->peer_index;
    return listens && qp_share_partition(qp, peer) && qp_have_agreed(qp, peer) &&
           peer->type == qp->type && peer->attr.dest_qp_num == qp->number &&
           peer->port == qp->peer_port && peer->peer_port == qp->port;
}

/* Counts the request's packets on both sides. */
static void advance_psn(struct visit *v)
{
    struct shm_qp *qp = v->run->qp;
    uint64_t mtu = 128u << qp->attr.path_mtu, bytes = v->wqe->length;

    qp->sq_psn = (qp->sq_psn + (uint32_t)(bytes ? (bytes + mtu - 1) / mtu : 1)) & PSN_MASK;
    atomic_store_explicit(&v->peer->epsn, qp->sq_psn, memory_order_relaxed);
}

/* The responder refuses: both ends of a reliable connection break. */
static enum verdict refuse(struct visit *v, enum ibv_wc_status status, uint32_t event)
{
    if (v->run->qp->type == IBV_QPT_RC) {
        v->wqe->status = status;
        v->run->receive_all(v->run);
        qp_kill(v->peer_index, event);
        v->run->hurt = v->peer_index;
    }
    return VERDICT_LANDED;
}

static enum verdict finish_copy(struct visit *v, int err)
{
    if (err == -EFAULT) {
        v->wqe->status = IBV_WC_LOC_PROT_ERR;
    }
    return err == -ESRCH || err == -EPERM ? VERDICT_LOST : VERDICT_LANDED;
}

static bool remote_memory(struct visit *v, uint64_t length, uint32_t access, struct pieces *p)
{
    void *where;

    pieces_clear(p, v->peer->proc);
    if (length == 0) {
        return true;
    }
    if (!mr_translate(v->wqe->rkey, v->peer->proc, v->peer->pd, v->wqe->raddr, length, access,
                      &where)) {
        return false;
    }
    pieces_add(p, where, length);
    return true;
}

static void deliver(struct visit *v, const struct receive *r, enum ibv_wc_status status,
                    enum ibv_wc_opcode opcode)
{
    struct shm_cqe e;

    receive_fill(r, &e);
    e.wc.status = status;
    e.wc.opcode = opcode;
    e.wc.byte_len = v->wqe->length;
    e.wc.src_qp = v->run->qp->number;
    e.wc.slid = shm.ports[v->run->qp->port].lid;
    e.wc.sl = v->run->qp->av.sl;
    e.solicited = (v->wqe->flags & IBV_SEND_SOLICITED) != 0;
    if (v->wqe->opcode == IBV_WR_SEND_WITH_IMM || v->wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        e.wc.wc_flags |= IBV_WC_WITH_IMM;
        e.wc.imm_data = v->wqe->imm;
    }
    exec_deliver(v->run, v->wqe, &e);
}

static enum verdict not_ready(struct visit *v)
{
    static const uint32_t timers_10us[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                             16,    24,   32,   48,    64,    96,    128,   192,
                                             256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                             4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

    /* Nothing is copied here, which would find a dead process. */
    if (v->run->qp->type == IBV_QPT_UC || !proc_is_alive(v->peer->proc)) {
        return VERDICT_LOST;
    }
    v->run->rnr_wait = timers_10us[v->peer->attr.min_rnr_timer & 31] * 10000ull;
    return VERDICT_NOT_READY;
}

static enum verdict do_send(struct visit *v)
{
    struct receive r;
    enum verdict verdict;

    if (!receive_take(v->peer_index, &r)) {
        return not_ready(v);
    }
    if (v->local.bytes > r.to.bytes) {
        deliver(v, &r, IBV_WC_LOC_LEN_ERR, IBV_WC_RECV);
        return refuse(v, IBV_WC_REM_INV_REQ_ERR, 0);
    }
    if (r.bad_key) {
        deliver(v, &r, IBV_WC_LOC_PROT_ERR, IBV_WC_RECV);
        return refuse(v, IBV_WC_REM_OP_ERR, 0);
    }
    pieces_cut(&r.to, v->local.bytes);
    verdict = finish_copy(v, copy_pieces(&v->local, &r.to));
    if (verdict == VERDICT_LANDED) {
        deliver(v, &r, v->wqe->status ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS, IBV_WC_RECV);
    }
    return verdict;
}

static int copy_part(const struct visit *v, const struct pieces *to, uint64_t first, uint64_t bytes)
{
    struct pieces from, part;

    pieces_slice(&v->local, first, bytes, &from);
    pieces_slice(to, first, bytes, &part);
    return copy_pieces(&from, &part);
}

/* Those packets of a write whose bits are set; those for which there is no bit go as the last. */
static int copy_packets(const struct visit *v, const struct pieces *to, uint64_t which)
{
    const uint64_t mtu = 128u << v->run->qp->attr.path_mtu, length = v->wqe->length;
    int err = 0;

    for (uint32_t i = 0; i * mtu < length && i < WQE_PACKETS && !err; i++) {
        uint64_t bytes = i + 1 < WQE_PACKETS && length - i * mtu > mtu ? mtu : length - i * mtu;

        err = which >> i & 1 ? copy_part(v, to, i * mtu, bytes) : 0;
    }
    return err;
}

/* Adversarial mode: fills a buffer whose content is undefined by now. */
static int fill_with_rubbish(const struct pieces *to)
{
    char rubbish[RUBBISH_BYTES];

    memset(rubbish, RUBBISH, sizeof(rubbish));
    for (uint64_t at = 0; at < to->bytes; at += sizeof(rubbish)) {
        struct pieces from, part;
        uint64_t left = to->bytes - at;
        int err;

        pieces_clear(&from, SHM_NONE);
        pieces_add(&from, rubbish, left < sizeof(rubbish) ? left : sizeof(rubbish));
        pieces_slice(to, at, from.bytes, &part);
        err = copy_pieces(&from, &part);
        if (err) {
            return err;
        }
    }
    return 0;
}

static enum verdict do_write(struct visit *v)
{
    struct pieces to;
    struct receive r;
    bool with_imm = v->wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    uint32_t ahead;
    int err;
    enum verdict verdict;

    if (!(v->peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
        return refuse(v, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    if (!remote_memory(v, v->wqe->length, IBV_ACCESS_REMOTE_WRITE, &to)) {
        return refuse(v, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    if (with_imm && !receive_take(v->peer_index, &r)) {
        return not_ready(v);
    }
    ahead = v->wqe->ahead;
    err = v->wqe->scattered         ? copy_packets(v, &to, ~v->wqe->scattered)
          : ahead == v->wqe->length ? 0
          : ahead                   ? copy_part(v, &to, ahead, v->wqe->length - ahead)
                                    : copy_pieces(&v->local, &to);
    verdict = finish_copy(v, err);
    if (verdict == VERDICT_LANDED && v->wqe->status == IBV_WC_SUCCESS && with_imm) {
        deliver(v, &r, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
    }
    return verdict;
}

static bool is_read(const struct shm_wqe *wqe)
{
    return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* A requester may have no more reads and atomics on their way than the responder has places for. */
static bool has_too_many_reads(const struct visit *v)
{
    struct shm_qp *qp = v->run->qp;
    uint32_t places = v->peer->attr.max_dest_rd_atomic, n = 0;

    if (places >= qp->attr.max_rd_atomic) {
        return false;
    }
    for (uint64_t i = qp->sq_done; i != qp->sq_tail && n <= places; i++) {
        n += is_read(shm_at(&qp->sq, i));
    }
    return n > places;
}

static enum verdict do_read(struct visit *v)
{
    struct pieces from;

    if (!(v->peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) || has_too_many_reads(v)) {
        return refuse(v, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    if (!remote_memory(v, v->wqe->length, IBV_ACCESS_REMOTE_READ, &from)) {
        return refuse(v, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    if (exec_is_late(v->wqe) && !v->is_late) {
        return finish_copy(v, fill_with_rubbish(&v->local));
    }
    return finish_copy(v, copy_pieces(&from, &v->local));
}

/* What an atomic found, which its request keeps, comes to the requester. */
static int bring_old(struct shm_wqe *wqe, const struct pieces *local)
{
    struct pieces old;

    pieces_clear(&old, SHM_NONE);
    pieces_add(&old, &wqe->compare, sizeof(wqe->compare));
    return copy_pieces(&old, local);
}

static enum verdict do_atomic(struct visit *v)
{
    struct pieces remote, value;
    uint64_t old, next;
    struct lock *lock;
    int err;

    if (!(v->peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || has_too_many_reads(v) ||
        v->wqe->raddr % sizeof(old)) {
        return refuse(v, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    if (!remote_memory(v, sizeof(old), IBV_ACCESS_REMOTE_ATOMIC, &remote)) {
        return refuse(v, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    lock = &shm.head->atomic_lock[(v->wqe->raddr >> 3) % 64];
    lock_take(lock);
    pieces_clear(&value, SHM_NONE);
    pieces_add(&value, &old, sizeof(old));
    err = copy_pieces(&remote, &value);
    if (v->wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        next = old + v->wqe->compare;
    } else {
        next = old == v->wqe->compare ? v->wqe->swap : old;
    }
    value.iov[0].iov_base = &next;
    err = err ? err : copy_pieces(&value, &remote);
    lock_drop(lock);
    if (err) {
        return finish_copy(v, err);
    }
    v->wqe->compare = old;
    return finish_copy(v, exec_is_late(v->wqe) ? fill_with_rubbish(&v->local)
                                               : bring_old(v->wqe, &v->local));
}

static enum verdict act(struct visit *v)
{
    switch (v->wqe->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return do_write(v);
    case IBV_WR_RDMA_READ:
        return do_read(v);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return do_atomic(v);
    default:
        return do_send(v);
    }
}

enum verdict exec_connected(struct run *run, struct shm_wqe *wqe)
{
    struct shm_qp *qp = run->qp;
    struct visit v; /* large: only what is used gets set */
    enum verdict verdict;

    v.run = run;
    v.wqe = wqe;
    v.is_late = false;
    wqe->status = IBV_WC_SUCCESS;
    if (!exec_gather(qp, wqe, is_read(wqe) ? IBV_ACCESS_LOCAL_WRITE : 0, &v.local)) {
        return VERDICT_LANDED;
    }
    if (wqe->length > MESSAGE_MAX) {
        wqe->status = IBV_WC_LOC_LEN_ERR;
        return VERDICT_LANDED;
    }
    if (is_read(wqe) && qp->attr.max_rd_atomic == 0) {
        wqe->status = IBV_WC_LOC_QP_OP_ERR;
        return VERDICT_LANDED;
    }
    if (!find_peer(&v) || (qp->type == IBV_QPT_RC && v.peer->epsn != qp->sq_psn)) {
        return VERDICT_LOST;
    }
    switch (fault_fate(qp, qp->peer_port, wqe)) {
    case FATE_LOSE:
        return VERDICT_LOST;
    case FATE_RNR:
        return not_ready(&v);
    case FATE_DELIVER:
        break;
    }
    if (v.peer->state == IBV_QPS_RTR && !atomic_exchange(&v.peer->established, 1)) {
        chan_signal_async(v.peer->ctx, IBV_EVENT_COMM_EST, v.peer->user, 0);
    }
    verdict = act(&v);
    if (verdict == VERDICT_LANDED && wqe->status == IBV_WC_SUCCESS) {
        advance_psn(&v);
    }
    return verdict;
}

bool exec_is_late(const struct shm_wqe *wqe)
{
    return shm.head->conf.adversarial && is_read(wqe);
}

void exec_bring_late(struct run *run, struct shm_wqe *wqe)
{
    struct visit v;

    v.run = run;
    v.wqe = wqe;
    v.is_late = true;
    if (!exec_gather(run->qp, wqe, IBV_ACCESS_LOCAL_WRITE, &v.local)) {
        return;
    }
    if (wqe->opcode != IBV_WR_RDMA_READ) {
        finish_copy(&v, bring_old(wqe, &v.local));
    } else if (!find_peer(&v) || do_read(&v) == VERDICT_LOST) {
        wqe->status = IBV_WC_RETRY_EXC_ERR;
    }
}

static bool is_write(const struct shm_wqe *wqe)
{
    return wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Where the bytes of a write or send will go, when nothing speaks against it. */
static bool find_place(struct visit *v, struct pieces *to)
{
    struct receive r;

    if (is_write(v->wqe)) {
        return (v->peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) &&
               remote_memory(v, v->wqe->length, IBV_ACCESS_REMOTE_WRITE, to);
    }
    if (!receive_peek(v->peer_index, &r) || r.bad_key || r.to.bytes < v->local.bytes) {
        return false;
    }
    *to = r.to;
    pieces_cut(to, v->local.bytes);
    return true;
}

/* Fills what a request may already copy, and where to. Errors will be found again. */
static bool prepare_early(struct run *run, struct shm_wqe *wqe, struct visit *v, struct pieces *to)
{
    struct shm_qp *qp = run->qp;

    v->run = run;
    v->wqe = wqe;
    v->is_late = false;
    if (qp->type == IBV_QPT_UD || is_read(wqe) || wqe->length < 2 || wqe->length > MESSAGE_MAX ||
        shm.ports[qp->port].state != IBV_PORT_ACTIVE || !exec_gather(qp, wqe, 0, &v->local)) {
        return false;
    }
    return find_peer(v) && shm.ports[qp->peer_port].state == IBV_PORT_ACTIVE &&
           (qp->type != IBV_QPT_RC || v->peer->epsn == qp->sq_psn) && find_place(v, to);
}

void exec_early(struct run *run, struct shm_wqe *wqe)
{
    struct visit v;
    struct pieces to;

    if (prepare_early(run, wqe, &v, &to)) {
        uint64_t first = pieces_word(&to, v.local.bytes - 1 - shm_random(v.local.bytes));

        copy_part(&v, &to, first, v.local.bytes - first);
    }
}

/* Any packets of a write that may take any route. */
static void scatter(struct run *run, struct shm_wqe *wqe)
{
    struct visit v;
    struct pieces to;
    uint64_t which = shm_random(UINT64_MAX);

    if (wqe->opcode == IBV_WR_RDMA_WRITE && prepare_early(run, wqe, &v, &to) &&
        copy_packets(&v, &to, which) == 0) {
        wqe->scattered = which;
    }
}

/* Of a run of writes each may land before those that were posted before it; what is no write waits
   its turn, and so does what follows it. Each is asked once whether it does. */
void exec_swap(struct run *run, uint64_t end)
{
    struct shm_qp *qp = run->qp;

    for (uint64_t i = qp->sq_landed; i < end; i++) {
        struct shm_wqe *wqe = shm_at(&qp->sq, i);
        struct visit v;
        struct pieces to;

        if (!is_write(wqe) || wqe->flags & IBV_SEND_FENCE) {
            return;
        }
        if (wqe->early || (i == qp->sq_landed && !shm.head->conf.scatter)) {
            continue;
        }
        wqe->early = 1;
        if (shm.head->conf.scatter) {
            scatter(run, wqe);
        } else if (shm_random(2) == 0 && prepare_early(run, wqe, &v, &to) &&
                   copy_pieces(&v.local, &to) == 0) {
            wqe->ahead = wqe->length;
        }
    }
}

void exec_ahead(struct run *run, struct shm_wqe *wqe)
{
    struct visit v;
    struct pieces to;
    uint32_t last = 128u << shm.head->conf.mtu;

    if (wqe->inlined || wqe->length <= last || !is_write(wqe) ||
        !prepare_early(run, wqe, &v, &to)) {
        return;
    }
    if (copy_part(&v, &to, 0, wqe->length - last) == 0) {
        wqe->ahead = wqe->length - last;
    }
}
