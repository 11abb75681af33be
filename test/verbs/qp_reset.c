/* RESET empties a queue pair without a word; connected again it works like a new one. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a queue pair through RESET is empty and works again");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct vt_address a = vt_address(&p.a), b = vt_address(&p.b);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < p.b.cap.max_recv_wr; i++) {
            VT_OK(vt_recv(&p.b, i, 0, 64));
        }
        VT_OK(round == 1 ? vt_to_state(p.a.qp, IBV_QPS_ERR) : 0);
        VT_OK(vt_to_state(p.a.qp, IBV_QPS_RESET));
        VT_OK(vt_to_state(p.b.qp, IBV_QPS_RESET));
        VT_QUIET(p.b.rcq);
        vt_side_connect(&p.a, &conf, &b);
        vt_side_connect(&p.b, &conf, &a);
        vt_expect_alive(&p);
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, round, 0, 4096);
        vt_fill(p.a.buf, 4096, (unsigned)round);
        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.a.scq, round, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf, 4096, (unsigned)round), "expected the bytes written");
    }
    vt_disconnect(&p);
    return vt_close();
}
