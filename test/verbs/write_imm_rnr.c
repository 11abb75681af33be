/* A write with immediate data needs a receive like a send does. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a write with immediate waits for a receive, at most rnr_retry times");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    vt_fill(p.a.buf, 64, 1);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_QUIET(p.a.scq);
    VT_OK(vt_recv(&p.b, 2, 4096, 0));
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.b.buf, 64, 1), "expected the bytes written");
    vt_disconnect(&p);

    conf.rnr_retry = 1;
    vt_connect(&p, &conf);
    w = vt_wr(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
    vt_disconnect(&p);
    return vt_close();
}
