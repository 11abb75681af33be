/* A region registered anew: other rights count from then on. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "re-registered with other rights, a region has them");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(vt.pd, p.b.buf, 4096, IBV_ACCESS_REMOTE_READ));
    int rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, conf.mr_access);
    if (rc && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        vt_skip("the device cannot re-register");
    }
    VT_CHECK(!rc, "ibv_rereg_mr: expected success, got %d (%s)", rc, vt_errname(errno));
    vt_fill(p.a.buf, 64, 1);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 64);
    w.wr.wr.rdma.rkey = mr->rkey;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.b.buf, 64, 1), "expected the bytes written");

    rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    VT_CHECK(!rc, "ibv_rereg_mr: expected success, got %d (%s)", rc, vt_errname(errno));
    w.wr.wr_id = 2;
    w.wr.wr.rdma.rkey = mr->rkey;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
    return vt_close();
}
