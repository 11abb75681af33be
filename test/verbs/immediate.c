/* Immediate data arrives as it was sent; a write with it takes a receive and leaves its memory
 * alone. */
#include "vt.h"

#include <arpa/inet.h>

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "immediate data arrives; a write with immediate consumes a receive");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    vt_fill(p.a.buf, 4096, 1);
    VT_OK(vt_recv(&p.b, 1, 8192, 64));
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND_WITH_IMM, 2, 0, 64);
    w.wr.imm_data = htonl(0x01020304);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(wc.opcode == IBV_WC_RECV, "opcode: expected RECV, got %d", wc.opcode);
    VT_CHECK(wc.wc_flags & IBV_WC_WITH_IMM, "expected the flag WITH_IMM");
    VT_CHECK(wc.imm_data == htonl(0x01020304), "expected 0x01020304, got 0x%08x",
             ntohl(wc.imm_data));

    memset(p.b.buf + 8192, 0x55, 64);
    VT_OK(vt_recv(&p.b, 3, 8192, 64));
    w = vt_wr(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0, 4096);
    w.wr.imm_data = htonl(0xfffefdfc);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 4, IBV_WC_SUCCESS);
    wc = VT_WC(p.b.rcq, 3, IBV_WC_SUCCESS);
    VT_CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM, "opcode: expected RECV_RDMA_WITH_IMM, got %d",
             wc.opcode);
    VT_CHECK(wc.imm_data == htonl(0xfffefdfc), "expected 0xfffefdfc, got 0x%08x",
             ntohl(wc.imm_data));
    VT_CHECK(wc.byte_len == 4096, "byte_len: expected the 4096 bytes written, got %u", wc.byte_len);
    VT_CHECK(vt_filled(p.b.buf, 4096, 1), "expected the bytes written");
    for (int i = 0; i < 64; i++) {
        VT_CHECK(p.b.buf[8192 + i] == 0x55, "expected the receive's memory untouched");
    }

    VT_OK(vt_recv(&p.b, 5, 0, 64));
    w = vt_wr(&p.a, IBV_WR_SEND, 6, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    wc = VT_WC(p.b.rcq, 5, IBV_WC_SUCCESS);
    VT_CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM), "a plain send: expected no flag WITH_IMM");
    VT_WC(p.a.scq, 6, IBV_WC_SUCCESS);

    /* A plain write takes no receive. */
    VT_OK(vt_recv(&p.b, 7, 0, 64));
    w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 8, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 8, IBV_WC_SUCCESS);
    VT_QUIET(p.b.rcq);
    vt_disconnect(&p);
    return vt_close();
}
