/* Messages of no bytes are messages; a write or read of none needs no key. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "messages of no bytes are delivered; empty writes and reads check no key");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    for (int round = 0; round < 2; round++) {
        VT_OK(vt_recv(&p.b, 1, 0, 64));
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 2, 0, 0);
        w.wr.num_sge = 0; /* a piece of length 0 may mean 2 GiB to some devices */
        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
        struct ibv_wc wc = VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
        VT_CHECK(wc.byte_len == 0, "byte_len: expected 0, got %u", wc.byte_len);
    }
    enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    for (int i = 0; i < 2; i++) {
        struct vt_wr w = vt_wr(&p.a, ops[i], 3, 0, 0);
        w.wr.num_sge = 0;
        w.wr.wr.rdma.rkey = 0;
        w.wr.wr.rdma.remote_addr = 0;
        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.a.scq, 3, IBV_WC_SUCCESS);
    }
    vt_expect_alive(&p);
    vt_disconnect(&p);
    return vt_close();
}
