/* After an error all that was posted comes back flushed, each queue in its order, and so do new
 * posts. */
#include "vt.h"

enum { N = 8 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "an error flushes both queues in order, later posts as well");
    struct vt_conf conf = vt_conf();
    conf.rnr_retry = 0;
    vt_connect(&p, &conf);
    for (uint64_t i = 0; i < N; i++) {
        VT_OK(vt_recv(&p.a, 100 + i, 0, 64));
    }
    /* The first send finds no receive and fails; those behind it are not executed. */
    for (uint64_t i = 0; i < N; i++) {
        struct vt_wr w = vt_wr(&p.a, i ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, i, i * 64, 64);
        vt_fill(p.a.buf + i * 64, 64, (unsigned)i + 1);
        w.wr.send_flags = i % 2 ? 0 : IBV_SEND_SIGNALED;
        VT_OK(vt_post(&p.a, &w));
    }
    VT_WC(p.a.scq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
    for (uint64_t i = 1; i < N; i++) {
        /* Unsignaled requests complete as well when they are flushed. */
        VT_WC(p.a.scq, i, IBV_WC_WR_FLUSH_ERR);
        VT_CHECK(!vt_filled(p.b.buf + i * 64, 64, (unsigned)i + 1), "expected no bytes of a flush");
    }
    for (uint64_t i = 0; i < N; i++) {
        VT_WC(p.a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
    }
    vt_wait_error(p.a.qp);
    struct vt_wr late = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 50, 0, 64);
    VT_OK(vt_post(&p.a, &late));
    VT_WC(p.a.scq, 50, IBV_WC_WR_FLUSH_ERR);
    VT_OK(vt_recv(&p.a, 51, 0, 64));
    struct ibv_wc wc;
    if (!vt_poll(p.a.rcq, &wc, 1000)) {
        vt_differs("a receive posted in the error state was not flushed");
    } else {
        VT_CHECK(wc.wr_id == 51 && wc.status == IBV_WC_WR_FLUSH_ERR,
                 "a receive posted in the error state: expected a flush, got '%s'",
                 ibv_wc_status_str(wc.status));
    }
    VT_QUIET(p.a.scq);
    VT_CHECK(vt_state(p.b.qp) == IBV_QPS_RTS, "expected the other side in RTS");
    vt_disconnect(&p);
    return vt_close();
}
