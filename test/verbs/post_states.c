/* Receives may be posted from INIT on, sends from RTS on; before that nothing may be executed. */
#include "vt.h"

static void check_send_waits(struct vt_side *side, const char *state)
{
    struct vt_wr w = vt_wr(side, IBV_WR_RDMA_WRITE, 1, 0, 8);
    if (vt_post(side, &w) == 0) {
        vt_differs("a send posted in %s was taken", state);
    }
    VT_QUIET(side->scq);
}

int main(int argc, char **argv)
{
    struct vt_side a, b;
    vt_open(argc, argv, "sends wait for RTS, receives for INIT");
    struct vt_conf conf = vt_conf();
    vt_side_create(&a, vt.pd, &conf, false);
    vt_side_create(&b, vt.pd, &conf, true);
    a.peer = &b;
    b.peer = &a;
    struct vt_address to_a = vt_address(&a), to_b = vt_address(&b);
    vt_fill(a.buf, 8, 1);
    check_send_waits(&a, "RESET");
    VT_OK(vt_to_state(a.qp, IBV_QPS_RESET));
    VT_OK(vt_to_init(a.qp, &conf));
    check_send_waits(&a, "INIT");
    VT_OK(vt_to_state(a.qp, IBV_QPS_RESET));
    if (vt_recv(&b, 1, 0, 64) == 0) {
        vt_differs("a receive posted in RESET was taken");
        VT_OK(vt_to_state(b.qp, IBV_QPS_RESET));
    }
    VT_OK(vt_to_init(b.qp, &conf));
    VT_OK(vt_recv(&b, 2, 1024, 64));
    VT_OK(vt_to_rtr(b.qp, &conf, &to_a));
    VT_OK(vt_to_rts(b.qp, &conf));
    vt_side_connect(&a, &conf, &to_b);
    VT_CHECK(!vt_filled(b.buf, 8, 1), "expected no bytes written by requests posted before RTS");

    struct vt_wr w = vt_wr(&a, IBV_WR_SEND, 3, 1024, 64);
    VT_OK(vt_post(&a, &w));
    VT_WC(a.scq, 3, IBV_WC_SUCCESS);
    VT_WC(b.rcq, 2, IBV_WC_SUCCESS);
    vt_side_destroy(&a);
    vt_side_destroy(&b);
    return vt_close();
}
