/* A message longer than the receive: both sides hear of it and both queue pairs are done. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a receive too short is a length error here and an invalid request there");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    memset(p.b.buf, 0x77, 4096);
    VT_OK(vt_recv(&p.b, 1, 0, 64));
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 2, 0, 65);
    VT_OK(vt_post(&p.a, &w));
    VT_WC_OR(p.b.rcq, 1, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR);
    VT_WC_OR(p.a.scq, 2, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR);
    vt_wait_error(p.a.qp);
    vt_wait_error(p.b.qp);
    for (int i = 64; i < 4096; i++) {
        VT_CHECK(p.b.buf[i] == 0x77, "expected byte %d behind the receive untouched", i);
    }
    vt_disconnect(&p);
    return vt_close();
}
