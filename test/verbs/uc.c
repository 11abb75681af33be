/* Unreliable connections: sends and writes arrive, nobody waits for a receive, reading is refused.
 */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "an unreliable connection sends and writes, never waits, never reads");
    struct vt_conf conf = vt_conf();
    conf.type = IBV_QPT_UC;
    vt_connect(&p, &conf);
    vt_expect_alive(&p);
    vt_fill(p.a.buf, 4096, 1);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 4096);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    uint64_t end = vt_now_ms() + VT_WAIT_MS;
    while (!vt_filled(p.b.buf, 4096, 1)) {
        VT_CHECK(vt_now_ms() < end, "expected the bytes written, got others");
    }
    w = vt_wr(&p.a, IBV_WR_SEND, 2, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    VT_OK(vt_recv(&p.b, 3, 0, 64));
    VT_QUIET(p.b.rcq);
    w = vt_wr(&p.a, IBV_WR_RDMA_READ, 4, 0, 64);
    if (vt_post(&p.a, &w) == 0) {
        struct ibv_wc wc;
        VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "a READ: expected a refusal, got nothing");
        VT_CHECK(wc.status != IBV_WC_SUCCESS, "a READ: expected a refusal, got success");
    }
    vt_disconnect(&p);
    return vt_close();
}
