/* The extended way to poll: one completion at a time, read field by field. */
#include "verbs/cq.h"

static struct hca_cq *ex_cq(struct ibv_cq_ex *ex)
{
    return container_of(ex, struct hca_cq, ex);
}

static int take_next(struct hca_cq *cq)
{
    if (!cq_take(&shm.cqs[cq->index], &cq->current)) {
        return ENOENT;
    }
    cq->ex.wr_id = cq->current.wr_id;
    cq->ex.status = (enum ibv_wc_status)cq->current.status;
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct hca_cq *cq = ex_cq(ex);
    if (attr && attr->comp_mask) {
        return EINVAL;
    }
    if (take_next(cq) == 0) {
        return 0;
    }
    cq_idle();
    int err = take_next(cq);
    return err && shm.cqs[cq->index].overrun ? EIO : err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return take_next(ex_cq(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return (enum ibv_wc_opcode)ex_cq(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return ex_cq(ex)->current.stamp;
}

void cqex_set_ops(struct hca_cq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ex;
    cq->wc_flags = (uint32_t)wc_flags;
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    ex->read_byte_len = wc_flags & IBV_WC_EX_WITH_BYTE_LEN ? read_byte_len : NULL;
    ex->read_imm_data = wc_flags & IBV_WC_EX_WITH_IMM ? read_imm_data : NULL;
    ex->read_qp_num = wc_flags & IBV_WC_EX_WITH_QP_NUM ? read_qp_num : NULL;
    ex->read_src_qp = wc_flags & IBV_WC_EX_WITH_SRC_QP ? read_src_qp : NULL;
    ex->read_slid = wc_flags & IBV_WC_EX_WITH_SLID ? read_slid : NULL;
    ex->read_sl = wc_flags & IBV_WC_EX_WITH_SL ? read_sl : NULL;
    ex->read_dlid_path_bits = wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS ? read_dlid_path_bits : NULL;
    ex->read_completion_ts =
        wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP ? read_completion_ts : NULL;
}
