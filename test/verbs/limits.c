/* What is granted is at least what was asked for; beyond the device's limits nothing is granted. */
#include "vt.h"

static struct ibv_qp *try_qp(struct ibv_cq *cq, struct ibv_qp_cap cap)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(vt.pd, &init);
    if (qp) {
        VT_CHECK(init.cap.max_send_wr >= cap.max_send_wr &&
                     init.cap.max_recv_wr >= cap.max_recv_wr &&
                     init.cap.max_send_sge >= cap.max_send_sge &&
                     init.cap.max_recv_sge >= cap.max_recv_sge &&
                     init.cap.max_inline_data >= cap.max_inline_data,
                 "expected at least what was asked for");
    }
    return qp;
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "objects beyond the device's limits are refused");
    uint32_t wr = (uint32_t)vt.dev.max_qp_wr, sge = (uint32_t)vt.dev.max_sge;
    struct ibv_cq *cq = VT_PTR(ibv_create_cq(vt.ctx, 16, NULL, NULL, 0));
    VT_CHECK(cq->cqe >= 16, "asked for 16 completions, got %d", cq->cqe);
    VT_OK(ibv_destroy_qp(VT_PTR(try_qp(cq, (struct ibv_qp_cap){3, 5, 2, 1, 17}))));
    VT_OK(ibv_destroy_qp(VT_PTR(try_qp(cq, (struct ibv_qp_cap){1, 1, sge < 30 ? sge : 4, 1, 0}))));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){wr + 1, 1, 1, 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, wr + 1, 1, 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, 1, sge + 1, 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, 1, 1, sge + 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, 1, 1, 1, 1u << 20}));
    VT_OK(ibv_destroy_cq(cq));
    VT_NULL(ibv_create_cq(vt.ctx, vt.dev.max_cqe + 1, NULL, NULL, 0));
    VT_NULL(ibv_create_cq(vt.ctx, 0, NULL, NULL, 0));
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = (uint32_t)vt.dev.max_srq_wr + 1, .max_sge = 1}};
    VT_NULL(ibv_create_srq(vt.pd, &init));
    return vt_close();
}
