/* A target that does not answer: the sender hears of it after its retries, whatever the reason. */
#include "vt.h"

static struct vt_conf quick(void)
{
    struct vt_conf conf = vt_conf();
    conf.timeout = 10;
    conf.retry_cnt = 1;
    return conf;
}

static void expect_exceeded(struct vt_side *side, enum ibv_wr_opcode opcode)
{
    struct vt_wr w = vt_wr(side, opcode, 1, 0, 64);
    VT_OK(vt_post(side, &w));
    VT_WC(side->scq, 1, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(side->qp);
}

static void check_state(enum ibv_qp_state state, enum ibv_wr_opcode opcode)
{
    struct vt_pair p;
    struct vt_conf conf = quick();
    vt_connect(&p, &conf);
    VT_OK(vt_to_state(p.b.qp, state));
    expect_exceeded(&p.a, opcode);
    vt_disconnect(&p);
}

/* A lone queue pair that talks to an address where nobody is. */
static void check_address(uint32_t qpn, uint16_t lid, bool is_dead)
{
    struct vt_conf conf = quick();
    struct vt_side side, gone;
    vt_side_create(&side, vt.pd, &conf, false);
    vt_side_create(&gone, vt.pd, &conf, false);
    struct vt_address to = vt_address(&gone);
    vt_side_destroy(&gone);
    to.qpn = is_dead ? to.qpn : qpn;
    to.lid = lid ? lid : to.lid;
    vt_side_connect(&side, &conf, &to);
    expect_exceeded(&side, IBV_WR_RDMA_WRITE);
    vt_side_destroy(&side);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "a target that does not answer ends as retry count exceeded");
    check_state(IBV_QPS_ERR, IBV_WR_RDMA_WRITE);
    check_state(IBV_QPS_RESET, IBV_WR_RDMA_READ);
    check_state(IBV_QPS_ERR, IBV_WR_SEND);
    check_address(0, 0, true);
    check_address(0xfffffe, 0, false);
    if (!vt.is_roce) {
        check_address(0xfffffe, 0xbfff, false);
    }
    return vt_close();
}
