/* No receive at the target: as many retries as were asked for, then RNR retry exceeded; 7 is for
 * ever. */
#include "vt.h"

static void check_exceeded(int retries)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.rnr_retry = retries;
    vt_connect(&p, &conf);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 1, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    struct ibv_wc wc = VT_WC(p.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    VT_CHECK(wc.qp_num == p.a.qp->qp_num, "expected queue pair %u, got %u", p.a.qp->qp_num,
             wc.qp_num);
    vt_wait_error(p.a.qp);
    VT_CHECK(vt_state(p.b.qp) == IBV_QPS_RTS, "expected the target unharmed in RTS");
    vt_disconnect(&p);
}

static void check_for_ever(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    vt_fill(p.a.buf, 64, 1);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 1, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_QUIET(p.a.scq);
    VT_OK(vt_recv(&p.b, 2, 0, 64));
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.b.buf, 64, 1), "expected the bytes sent, got others");
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "a send without a receive is retried rnr_retry times, 7 for ever");
    check_exceeded(0);
    check_exceeded(1);
    check_exceeded(3);
    check_for_ever();
    return vt_close();
}
