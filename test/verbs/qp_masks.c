/* Each transition needs its attributes: leave one out and it is refused; so are foreign ones. */
#include "vt.h"

static struct vt_conf conf;
static struct vt_address self;

static const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
static const int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                          IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
static const int to_rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

static int modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state,
                               .port_num = (uint8_t)vt.port_num,
                               .qp_access_flags = (unsigned)conf.qp_access,
                               .path_mtu = vt.port.active_mtu,
                               .dest_qp_num = self.qpn,
                               .max_dest_rd_atomic = 1,
                               .max_rd_atomic = 1,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .min_rnr_timer = 12,
                               .qkey = 0x1234,
                               .ah_attr = vt_ah_attr(&self)};
    return ibv_modify_qp(qp, &attr, mask);
}

/* All attributes but one are refused, for each one; then all are taken. */
static void check_required(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if (mask & bit) {
            int rc = modify(qp, state, mask & ~bit);
            VT_CHECK(rc, "to state %d without attribute 0x%x: expected a refusal, got success",
                     state, bit);
        }
    }
    int rc = modify(qp, state, mask);
    VT_CHECK(!rc, "to state %d with mask 0x%x: expected success, got %s", state, mask,
             vt_errname(rc));
}

int main(int argc, char **argv)
{
    struct vt_side side;
    vt_open(argc, argv, "a transition is refused without each of its required attributes");
    conf = vt_conf();
    vt_side_create(&side, vt.pd, &conf, false);
    self = vt_address(&side);
    int rc = modify(side.qp, IBV_QPS_INIT, to_init | IBV_QP_QKEY);
    VT_CHECK(rc, "an RC queue pair given a Q_Key: expected a refusal, got success");
    check_required(side.qp, IBV_QPS_INIT, to_init);
    check_required(side.qp, IBV_QPS_RTR, to_rtr);
    rc = modify(side.qp, IBV_QPS_RTS, to_rts | IBV_QP_PATH_MTU);
    VT_CHECK(rc, "the path MTU changed on the way to RTS: expected a refusal, got success");
    check_required(side.qp, IBV_QPS_RTS, to_rts);
    rc = modify(side.qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_DEST_QPN);
    VT_CHECK(rc, "the peer changed in RTS: expected a refusal, got success");
    rc = modify(side.qp, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
    VT_CHECK(!rc, "the RNR timer changed in RTS: expected success, got %s", vt_errname(rc));
    vt_side_destroy(&side);
    return vt_close();
}
