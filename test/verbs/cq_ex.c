/* The iterator over completions: the same facts as ibv_poll_cq, and ENOENT when there are none. */
#include "vt.h"

#include <arpa/inet.h>
#include <sched.h>

static struct ibv_cq_ex *create(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 32,
                                       .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
                                                   IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(vt.ctx, &attr);
    if (!cq && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        vt_skip("the device has no ibv_create_cq_ex");
    }
    VT_CHECK(cq, "ibv_create_cq_ex: expected a queue, got %s", vt_errname(errno));
    return cq;
}

static int start(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {.comp_mask = 0};
    uint64_t end = vt_now_ms() + VT_WAIT_MS;
    int rc = ibv_start_poll(cq, &attr);
    while (rc == ENOENT && vt_now_ms() < end) {
        sched_yield();
        rc = ibv_start_poll(cq, &attr);
    }
    return rc;
}

static void expect_two(struct ibv_cq_ex *cq, uint32_t qpn)
{
    VT_OK(start(cq));
    VT_CHECK(cq->wr_id == 1 && cq->status == IBV_WC_SUCCESS, "expected completion 1, got %llu '%s'",
             (unsigned long long)cq->wr_id, ibv_wc_status_str(cq->status));
    VT_CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV, "expected the opcode RECV");
    VT_CHECK(ibv_wc_read_byte_len(cq) == 64, "expected 64 bytes, got %u", ibv_wc_read_byte_len(cq));
    VT_CHECK(ibv_wc_read_imm_data(cq) == htonl(9), "expected immediate 9");
    VT_CHECK(ibv_wc_read_qp_num(cq) == qpn, "expected queue pair %u, got %u", qpn,
             ibv_wc_read_qp_num(cq));
    VT_OK(ibv_next_poll(cq));
    VT_CHECK(cq->wr_id == 2, "expected completion 2, got %llu", (unsigned long long)cq->wr_id);
    int rc = ibv_next_poll(cq);
    VT_CHECK(rc == ENOENT, "behind the last completion: expected ENOENT, got %s", vt_errname(rc));
    ibv_end_poll(cq);
}

int main(int argc, char **argv)
{
    struct vt_side a, b;
    vt_open(argc, argv, "the extended completion queue tells what ibv_poll_cq tells");
    struct vt_conf conf = vt_conf();
    vt_side_create(&a, vt.pd, &conf, false);
    vt_side_create(&b, vt.pd, &conf, true);
    struct ibv_cq_ex *cq = create();
    VT_OK(ibv_destroy_qp(b.qp));
    struct ibv_qp_init_attr init = {
        .send_cq = b.scq,
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    b.qp = VT_PTR(ibv_create_qp(vt.pd, &init));
    struct vt_address to_a = vt_address(&a), to_b = vt_address(&b);
    vt_side_connect(&a, &conf, &to_b);
    vt_side_connect(&b, &conf, &to_a);

    struct ibv_poll_cq_attr attr = {.comp_mask = 0};
    int rc = ibv_start_poll(cq, &attr);
    VT_CHECK(rc == ENOENT, "an empty queue: expected ENOENT, got %s", rc ? vt_errname(rc) : "0");
    VT_OK(vt_recv(&b, 1, 0, 64));
    VT_OK(vt_recv(&b, 2, 0, 64));
    for (uint64_t i = 0; i < 2; i++) {
        struct vt_wr w = vt_wr(&a, i ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i, 0, 64);
        w.wr.imm_data = htonl(9);
        VT_OK(vt_post(&a, &w));
        VT_WC(a.scq, i, IBV_WC_SUCCESS);
    }
    usleep(VT_QUIET_MS * 1000); /* the receiver's completion may follow the sender's */
    expect_two(cq, b.qp->qp_num);
    vt_side_destroy(&b);
    VT_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    vt_side_destroy(&a);
    return vt_close();
}
