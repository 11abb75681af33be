/* What was written before a send is there when the send is received; sends keep their order. */
#include "vt.h"

enum { ROUNDS = 100, WRITES = 7, LEN = 8000 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "writes posted before a send have landed when the send is received");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    for (unsigned round = 0; round < ROUNDS; round++) {
        vt_fill(p.a.buf, WRITES * LEN, round);
        VT_OK(vt_recv(&p.b, round, VT_BUF - 8, 8));
        for (unsigned i = 0; i < WRITES; i++) {
            struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, i, i * LEN, LEN);
            w.wr.send_flags = 0;
            VT_OK(vt_post(&p.a, &w));
        }
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 100 + round, VT_BUF - 8, 8);
        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.b.rcq, round, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf, WRITES * LEN, round),
                 "round %u: the send was received before the writes had landed", round);
        VT_WC(p.a.scq, 100 + round, IBV_WC_SUCCESS);
    }
    for (uint64_t i = 0; i < 16; i++) {
        VT_OK(vt_recv(&p.b, i, i * 8, 8));
    }
    for (uint64_t i = 0; i < 16; i++) {
        vt_fill(p.a.buf + i * 8, 8, (unsigned)i);
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, i, i * 8, 8);
        VT_OK(vt_post(&p.a, &w));
    }
    for (uint64_t i = 0; i < 16; i++) {
        VT_WC(p.b.rcq, i, IBV_WC_SUCCESS);
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf + i * 8, 8, (unsigned)i), "send %d came out of order", (int)i);
    }
    vt_disconnect(&p);
    return vt_close();
}
