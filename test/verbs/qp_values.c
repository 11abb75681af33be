/* Attributes that cannot be are refused, and what was set is what a query answers. */
#include "vt.h"

int main(int argc, char **argv)
{
    vt_open(argc, argv, "values out of range are refused; a query returns what was set");
    struct vt_conf conf = vt_conf(), bad = conf;
    struct vt_side side;
    vt_side_create(&side, vt.pd, &conf, false);
    struct vt_address self = vt_address(&side);

    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = (uint8_t)(vt.dev.phys_port_cnt + 1)};
    VT_REFUSED(ibv_modify_qp(side.qp, &attr,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    VT_OK(vt_to_init(side.qp, &conf));
    if (vt.dev.max_qp_rd_atom < 255) {
        bad.rd_atomic = vt.dev.max_qp_rd_atom + 1;
        if (vt_to_rtr(side.qp, &bad, &self) == 0) {
            vt_differs("more READs at once than the device can was accepted");
            VT_OK(vt_to_state(side.qp, IBV_QPS_RESET));
            VT_OK(vt_to_init(side.qp, &conf));
        }
    }
    conf.rd_atomic = vt.dev.max_qp_rd_atom < 4 ? vt.dev.max_qp_rd_atom : 4;
    VT_OK(vt_to_rtr(side.qp, &conf, &self));
    conf.rnr_retry = 3;
    conf.retry_cnt = 5;
    conf.timeout = 17;
    VT_OK(vt_to_rts(side.qp, &conf));

    struct ibv_qp_attr q;
    struct ibv_qp_init_attr init;
    int all = IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU | IBV_QP_RNR_RETRY |
              IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC |
              IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_PORT | IBV_QP_AV |
              IBV_QP_ACCESS_FLAGS | IBV_QP_CAP;
    VT_OK(ibv_query_qp(side.qp, &q, all, &init));
    VT_CHECK(q.dest_qp_num == self.qpn, "peer: expected %u, got %u", self.qpn, q.dest_qp_num);
    VT_CHECK(q.path_mtu == vt.port.active_mtu, "MTU: expected %d, got %d", vt.port.active_mtu,
             q.path_mtu);
    VT_CHECK(q.rnr_retry == 3, "rnr_retry: expected 3, got %u", q.rnr_retry);
    VT_CHECK(q.retry_cnt == 5, "retry_cnt: expected 5, got %u", q.retry_cnt);
    VT_CHECK(q.timeout == 17, "timeout: expected 17, got %u", q.timeout);
    VT_CHECK(q.port_num == vt.port_num, "port: expected %d, got %u", vt.port_num, q.port_num);
    VT_CHECK(q.min_rnr_timer == conf.min_rnr_timer, "min_rnr_timer: expected %d, got %u",
             conf.min_rnr_timer, q.min_rnr_timer);
    VT_CHECK(q.max_rd_atomic >= conf.rd_atomic, "max_rd_atomic: expected at least %d, got %u",
             conf.rd_atomic, q.max_rd_atomic);
    VT_CHECK(init.cap.max_send_wr == side.cap.max_send_wr, "max_send_wr: expected %u, got %u",
             side.cap.max_send_wr, init.cap.max_send_wr);
    VT_CHECK(q.ah_attr.is_global == vt.is_roce, "GRH: expected %d, got %u", vt.is_roce,
             q.ah_attr.is_global);
    vt_side_destroy(&side);
    return vt_close();
}
