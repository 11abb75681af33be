/* The builder functions ibv_wr_*: nothing before complete, all after it, nothing after abort. */
#include "vt.h"

#include <arpa/inet.h>

static struct ibv_qp_ex *create(struct vt_side *side, const struct vt_conf *conf)
{
    vt_side_create(side, vt.pd, conf, false);
    VT_OK(ibv_destroy_qp(side->qp));
    struct ibv_qp_init_attr_ex init = {
        .send_cq = side->scq,
        .recv_cq = side->rcq,
        .cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 32},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = vt.pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    side->qp = ibv_create_qp_ex(vt.ctx, &init);
    if (!side->qp && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        vt_skip("the device has no ibv_wr_* functions");
    }
    VT_CHECK(side->qp, "ibv_create_qp_ex: expected a queue pair, got %s", vt_errname(errno));
    return VT_PTR(ibv_qp_to_qp_ex(side->qp));
}

static void use(struct vt_side *a, struct ibv_qp_ex *qx, struct vt_side *b)
{
    uint64_t there = (uintptr_t)b->buf;
    vt_fill(a->buf, 4096, 1);
    VT_OK(vt_recv(b, 10, 8192, 64));
    VT_OK(vt_recv(b, 11, 8192, 64));
    ibv_wr_start(qx);
    qx->wr_id = 1;
    qx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qx, b->mr->rkey, there);
    ibv_wr_set_sge(qx, a->mr->lkey, (uintptr_t)a->buf, 4096);
    qx->wr_id = 2;
    /* Soft-RoCE takes inline data for inline only when the flag says so too
     * (docs/soft-roce.md). */
    qx->wr_flags |= vt.strict ? 0 : IBV_SEND_INLINE;
    ibv_wr_send_imm(qx, htonl(5));
    ibv_wr_set_inline_data(qx, "inline", 7);
    qx->wr_id = 3;
    qx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write_imm(qx, b->mr->rkey, there + 4096, htonl(6));
    ibv_wr_set_sge(qx, a->mr->lkey, (uintptr_t)a->buf, 128);
    VT_QUIET(b->rcq);
    VT_OK(ibv_wr_complete(qx));
    VT_WC(a->scq, 1, IBV_WC_SUCCESS);
    VT_WC(a->scq, 2, IBV_WC_SUCCESS);
    VT_WC(a->scq, 3, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(b->rcq, 10, IBV_WC_SUCCESS);
    VT_CHECK(wc.imm_data == htonl(5) && wc.byte_len == 7, "expected 7 bytes and immediate 5");
    wc = VT_WC(b->rcq, 11, IBV_WC_SUCCESS);
    VT_CHECK(wc.imm_data == htonl(6) && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM,
             "expected a write with immediate 6");
    VT_CHECK(vt_filled(b->buf, 4096, 1), "expected the bytes written");
    VT_CHECK(!strcmp((char *)b->buf + 8192, "inline"), "expected the inline bytes");

    ibv_wr_start(qx);
    qx->wr_id = 4;
    ibv_wr_rdma_write(qx, b->mr->rkey, there + 16384);
    ibv_wr_set_sge(qx, a->mr->lkey, (uintptr_t)a->buf, 64);
    ibv_wr_abort(qx);
    VT_QUIET(a->scq);
    VT_CHECK(b->buf[16384] == 0, "expected nothing of an aborted list");

    ibv_wr_start(qx);
    qx->wr_id = 5;
    ibv_wr_rdma_read(qx, b->mr->rkey, there);
    ibv_wr_set_sge(qx, a->mr->lkey, (uintptr_t)a->buf + 32768, 4096);
    VT_OK(ibv_wr_complete(qx));
    VT_WC(a->scq, 5, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(a->buf + 32768, 4096, 1), "expected the bytes read");
}

int main(int argc, char **argv)
{
    struct vt_side a, b;
    vt_open(argc, argv, "requests built by ibv_wr_* run when the list is complete");
    struct vt_conf conf = vt_conf();
    struct ibv_qp_ex *qx = create(&a, &conf);
    vt_side_create(&b, vt.pd, &conf, true);
    struct vt_address to_a = vt_address(&a), to_b = vt_address(&b);
    vt_side_connect(&a, &conf, &to_b);
    vt_side_connect(&b, &conf, &to_a);
    use(&a, qx, &b);
    vt_side_destroy(&a);
    vt_side_destroy(&b);
    return vt_close();
}
