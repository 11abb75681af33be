/* Keys count in their own protection domain only. */
#include "vt.h"

static struct ibv_pd *other;

static void check_local(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(other, p.a.buf, 4096, conf.mr_access));
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 64);
    w.sge.lkey = mr->lkey;
    if (vt_post(&p.a, &w) == 0) {
        VT_WC_OR(p.a.scq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR);
    }
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
}

static void check_remote(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(other, p.b.buf, 4096, conf.mr_access));
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 64);
    w.wr.wr.rdma.rkey = mr->rkey;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "a key of another protection domain is refused");
    other = VT_PTR(ibv_alloc_pd(vt.ctx));
    check_local();
    check_remote();
    VT_OK(ibv_dealloc_pd(other));
    return vt_close();
}
