/* A drained send queue: SQD finishes what has begun, starts nothing, and RTS lets the rest go. */
#include "vt.h"

enum { N = 6, HELD = N * 4096, BACK = HELD + 64, RESUME_MS = 1000 };

static int drain(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

/* What waits starts again by itself. Returns how many completions it took: none, or the first. */
static uint64_t resume(struct vt_pair *p, uint64_t next)
{
    struct vt_wr kick = vt_wr(&p->a, IBV_WR_RDMA_WRITE, N + 1, HELD, 64);
    struct ibv_wc wc;

    if (vt_poll(p->a.scq, &wc, RESUME_MS)) {
        VT_CHECK(wc.wr_id == next && wc.status == IBV_WC_SUCCESS,
                 "expected completion %d, got %d with '%s'", (int)next, (int)wc.wr_id,
                 ibv_wc_status_str(wc.status));
        return 1;
    }
    vt_differs("the send queue stands still in RTS until something is posted");
    kick.wr.send_flags = 0;
    VT_OK(vt_post(&p->a, &kick));
    return 0;
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "SQD finishes what has begun and holds what comes after");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    for (uint64_t i = 0; i < N; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, i, i * 4096, 4096);
        VT_OK(vt_post(&p.a, &w));
    }
    int err = drain(p.a.qp);
    if (err == EOPNOTSUPP || err == ENOSYS || err == EINVAL) {
        vt_skip("the device does not drain: %s", vt_errname(err));
    }
    VT_OK(err);
    vt_wait_event(IBV_EVENT_SQ_DRAINED, VT_WAIT_MS);
    VT_CHECK(vt_state(p.a.qp) == IBV_QPS_SQD, "expected the state SQD");
    uint64_t next = 0;
    struct ibv_wc wc;
    while (vt_poll(p.a.scq, &wc, VT_QUIET_MS)) { /* what had begun; the rest waits */
        VT_CHECK(wc.wr_id == next && wc.status == IBV_WC_SUCCESS,
                 "expected completion %d, got %d with '%s'", (int)next, (int)wc.wr_id,
                 ibv_wc_status_str(wc.status));
        next++;
    }
    vt_fill(p.a.buf + HELD, 64, 3);
    struct vt_wr held = vt_wr(&p.a, IBV_WR_RDMA_WRITE, N, HELD, 64);
    VT_OK(vt_post(&p.a, &held));
    VT_QUIET(p.a.scq);
    VT_CHECK(!vt_filled(p.b.buf + HELD, 64, 3), "expected a request posted in SQD to wait");
    VT_OK(vt_recv(&p.a, 40, BACK, 64)); /* the receive side goes on */
    struct vt_wr back = vt_wr(&p.b, IBV_WR_SEND, 41, BACK, 64);
    VT_OK(vt_post(&p.b, &back));
    VT_WC(p.b.scq, 41, IBV_WC_SUCCESS);
    VT_WC(p.a.rcq, 40, IBV_WC_SUCCESS);
    VT_OK(vt_to_state(p.a.qp, IBV_QPS_RTS));
    next += resume(&p, next);
    for (; next <= N; next++) {
        VT_WC(p.a.scq, next, IBV_WC_SUCCESS);
    }
    VT_CHECK(vt_filled(p.b.buf + HELD, 64, 3), "expected the bytes after RTS");
    vt_expect_alive(&p);
    vt_disconnect(&p);
    return vt_close();
}
