/* A region deregistered under a posted request: an error, and no byte goes there. */
#include "vt.h"

static void check_receive(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 1, 0, 64));
    VT_OK(ibv_dereg_mr(p.b.mr));
    p.b.mr = NULL;
    vt_fill(p.a.buf, 64, 1);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 2, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC_OR(p.b.rcq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
    VT_WC(p.a.scq, 2, IBV_WC_REM_OP_ERR);
    VT_CHECK(!vt_filled(p.b.buf, 64, 1), "expected no bytes in memory that was deregistered");
    vt_disconnect(&p);
}

/* The send waits for a receive; meanwhile its memory goes. It may have been read already. */
static void check_send(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    struct ibv_wc wc;
    vt_connect(&p, &conf);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 3, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_OK(ibv_dereg_mr(p.a.mr));
    p.a.mr = NULL;
    VT_OK(vt_recv(&p.b, 4, 0, 64));
    VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "expected the send to complete, somehow");
    if (wc.status != IBV_WC_LOC_PROT_ERR) {
        vt_differs("a send whose memory was deregistered before it ran ended with '%s'",
                   ibv_wc_status_str(wc.status));
    }
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "requests fail whose memory was deregistered");
    check_receive();
    check_send();
    return vt_close();
}
