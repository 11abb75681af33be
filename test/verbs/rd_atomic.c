/* A responder has max_dest_rd_atomic places for READs; who sends more than that is refused. */
#include "vt.h"

enum { MORE = 4, READS = 12, LEN = 4096 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "more READs at once than the responder has places for are refused");
    if (vt.dev.max_qp_init_rd_atom < MORE) {
        vt_skip("the device has %d READs in flight at most", vt.dev.max_qp_init_rd_atom);
    }
    struct vt_conf conf = vt_conf(), eager = conf;
    eager.rd_atomic = MORE;
    vt_side_create(&p.a, vt.pd, &conf, false);
    vt_side_create(&p.b, vt.pd, &conf, true);
    p.a.peer = &p.b;
    p.b.peer = &p.a;
    struct vt_address a = vt_address(&p.a), b = vt_address(&p.b);
    vt_side_connect(&p.a, &eager, &b);
    vt_side_connect(&p.b, &conf, &a);
    struct ibv_send_wr *bad;
    struct vt_wr w[READS];
    for (uint64_t i = 0; i < READS; i++) {
        w[i] = vt_wr(&p.a, IBV_WR_RDMA_READ, i, i * LEN, LEN);
        w[i].wr.sg_list = &w[i].sge;
        w[i].wr.next = i + 1 < READS ? &w[i + 1].wr : NULL;
    }
    VT_OK(ibv_post_send(p.a.qp, &w[0].wr, &bad));
    struct ibv_wc wc;
    VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "expected a completion");
    while (wc.status == IBV_WC_SUCCESS && wc.wr_id + 1 < READS) {
        VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "expected a completion");
    }
    if (wc.status == IBV_WC_SUCCESS) {
        vt_differs("%d READs were served where the responder has 1 place", READS);
    } else {
        VT_CHECK(wc.status == IBV_WC_REM_INV_REQ_ERR, "expected '%s', got '%s'",
                 ibv_wc_status_str(IBV_WC_REM_INV_REQ_ERR), ibv_wc_status_str(wc.status));
        vt_wait_error(p.a.qp);
    }
    vt_disconnect(&p);
    return vt_close();
}
