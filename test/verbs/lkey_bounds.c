/* The sender's own memory is checked too: key and bounds, at the post or by the completion. */
#include "vt.h"

static void check_refused(const char *what, enum ibv_wr_opcode opcode, size_t off, uint32_t key)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    vt_fill(p.b.buf, VT_BUF, 2);
    struct vt_wr w = vt_wr(&p.a, opcode, 5, 0, 64);
    w.sge.addr += off;
    w.sge.lkey ^= key;
    if (vt_post(&p.a, &w) == 0) {
        printf("%s\n", what);
        VT_WC_OR(p.a.scq, 5, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR);
        vt_wait_error(p.a.qp);
    }
    VT_CHECK(vt_filled(p.b.buf, VT_BUF, 2), "%s: expected the target's memory unchanged", what);
    vt_disconnect(&p);
}

/* A receive whose memory is not its own: the receiver is told, and the sender that it failed there.
 */
static void check_receive(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_sge sge = {
        .addr = (uintptr_t)p.b.buf + VT_BUF - 32, .length = 64, .lkey = p.b.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(p.b.qp, &wr, &bad) == 0) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 8, 0, 64);
        VT_OK(vt_post(&p.a, &w));
        VT_WC_OR(p.b.rcq, 9, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
        VT_WC(p.a.scq, 8, IBV_WC_REM_OP_ERR);
    }
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv,
            "a local buffer outside of its key's region ends as local protection error");
    check_refused("a write from beyond the end", IBV_WR_RDMA_WRITE, VT_BUF - 63, 0);
    check_refused("a send from beyond the end", IBV_WR_SEND, VT_BUF - 63, 0);
    check_refused("a write from before the start", IBV_WR_RDMA_WRITE, (size_t)-1, 0);
    check_refused("a write with another key", IBV_WR_RDMA_WRITE, 0, 0x5a);
    check_refused("a read into memory beyond the end", IBV_WR_RDMA_READ, VT_BUF - 63, 0);
    check_receive();
    return vt_close();
}
