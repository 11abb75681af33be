/* Local write: needed by remote writing, by receiving and by reading into memory; not by sending.
 */
#include "vt.h"

static struct ibv_mr *read_only(struct vt_side *side)
{
    return VT_PTR(ibv_reg_mr(vt.pd, side->buf, 4096, 0));
}

static void check_send_and_receive(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_mr *a = read_only(&p.a), *b = read_only(&p.b);
    VT_OK(vt_recv(&p.b, 1, 0, 64));
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, 2, 0, 64);
    w.sge.lkey = a->lkey;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);

    struct ibv_sge sge = {.addr = (uintptr_t)p.b.buf, .length = 64, .lkey = b->lkey};
    struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;
    VT_OK(ibv_post_recv(p.b.qp, &wr, &bad));
    w.wr.wr_id = 4;
    VT_OK(vt_post(&p.a, &w));
    VT_WC_OR(p.b.rcq, 3, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
    VT_WC(p.a.scq, 4, IBV_WC_REM_OP_ERR);
    VT_OK(ibv_dereg_mr(a));
    VT_OK(ibv_dereg_mr(b));
    vt_disconnect(&p);
}

static void check_read_target(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_mr *mr = read_only(&p.a);
    vt_fill(p.b.buf, 64, 1);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_READ, 5, 0, 64);
    w.sge.lkey = mr->lkey;
    if (vt_post(&p.a, &w) == 0) {
        VT_WC_OR(p.a.scq, 5, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR);
    }
    VT_CHECK(!vt_filled(p.a.buf, 64, 1), "expected nothing written into read-only memory");
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    static char memory[64];
    vt_open(argc, argv, "what the device writes to needs the local write right");
    VT_NULL(ibv_reg_mr(vt.pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_WRITE));
    VT_NULL(ibv_reg_mr(vt.pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_ATOMIC));
    check_send_and_receive();
    check_read_target();
    return vt_close();
}
