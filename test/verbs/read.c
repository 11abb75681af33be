/* A READ brings the target's bytes, of any length, in the order it was posted, limit or not. */
#include "vt.h"

enum { READS = 12, LEN = 4000 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "READs bring the target's bytes; more than max_rd_atomic wait their turn");
    struct vt_conf conf = vt_conf();
    conf.rd_atomic = 1;
    vt_connect(&p, &conf);
    vt_fill(p.b.buf, VT_BUF, 1);
    for (uint64_t i = 0; i < READS; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_READ, i, i * LEN, LEN);
        VT_OK(vt_post(&p.a, &w));
    }
    for (uint64_t i = 0; i < READS; i++) {
        struct ibv_wc wc = VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        VT_CHECK(wc.opcode == IBV_WC_RDMA_READ, "opcode: expected RDMA_READ, got %d", wc.opcode);
        VT_CHECK(!memcmp(p.a.buf + i * LEN, p.b.buf + i * LEN, LEN),
                 "READ %d completed: expected the target's bytes", (int)i);
    }
    VT_CHECK(p.a.buf[READS * LEN] == 0, "expected nothing behind the last READ");
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_READ, 50, 0, VT_BUF);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 50, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.a.buf, VT_BUF, 1), "expected all of the target's bytes");
    VT_QUIET(p.b.rcq);
    vt_disconnect(&p);
    return vt_close();
}
