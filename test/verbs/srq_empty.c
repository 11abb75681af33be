/* An empty shared receive queue is not ready for all its queue pairs; filled again, all go on. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p, q;
    vt_open(argc, argv, "an empty shared receive queue makes its senders wait or give up");
    struct vt_conf conf = vt_conf();
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    conf.srq = VT_PTR(ibv_create_srq(vt.pd, &init));
    vt_connect(&p, &conf);
    conf.rnr_retry = 1;
    vt_connect(&q, &conf);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 1, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    w = vt_wr(&q.a, IBV_WR_SEND, 2, 0, 64);
    VT_OK(vt_post(&q.a, &w));
    VT_WC(q.a.scq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
    VT_QUIET(p.a.scq);
    VT_OK(vt_recv(&p.b, 3, 0, 64));
    VT_WC(p.b.rcq, 3, IBV_WC_SUCCESS);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    vt_expect_alive(&p);
    vt_disconnect(&p);
    vt_disconnect(&q);
    VT_OK(ibv_destroy_srq(conf.srq));
    return vt_close();
}
