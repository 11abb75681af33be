/* Seven retries, the most there are, are seven: unlike those for a receiver that is not ready, they
 * end. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_conf conf;
    struct vt_pair p;
    struct vt_wr w;
    struct ibv_wc wc;

    vt_open(argc, argv, "retry_cnt 7 ends after seven retries");
    conf = vt_conf();
    conf.timeout = 10; /* 4 ms, for each of eight times */
    conf.retry_cnt = 7;
    vt_connect(&p, &conf);
    VT_OK(vt_to_state(p.b.qp, IBV_QPS_ERR));
    w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    if (vt_poll(p.a.scq, &wc, 3000)) {
        VT_CHECK(wc.status == IBV_WC_RETRY_EXC_ERR, "expected retry counter exceeded, got %s",
                 ibv_wc_status_str(wc.status));
    } else {
        vt_differs("no end within 3 s: 7 is taken as without end");
    }
    vt_disconnect(&p);
    return vt_close();
}
