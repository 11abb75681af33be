/* What is in use cannot be destroyed: EBUSY, and it goes on working. */
#include "vt.h"

static void expect_busy(int rc, const char *what)
{
    int err = rc > 0 ? rc : errno;
    VT_CHECK(rc, "%s: expected EBUSY, got success", what);
    VT_CHECK(err == EBUSY, "%s: expected EBUSY, got %s", what, vt_errname(err));
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    static char memory[4096];
    vt_open(argc, argv, "objects in use refuse to be destroyed");
    struct ibv_pd *pd = VT_PTR(ibv_alloc_pd(vt.ctx));
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
    expect_busy(ibv_dealloc_pd(pd), "a protection domain with a region");
    VT_OK(ibv_dereg_mr(mr));
    VT_OK(ibv_dealloc_pd(pd));

    struct vt_conf conf = vt_conf();
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    conf.srq = VT_PTR(ibv_create_srq(vt.pd, &init));
    conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&p, &conf);
    expect_busy(ibv_dealloc_pd(vt.pd), "a protection domain with queue pairs");
    expect_busy(ibv_destroy_cq(p.a.scq), "the completion queue of a send queue");
    expect_busy(ibv_destroy_cq(p.b.rcq), "the completion queue of a receive queue");
    expect_busy(ibv_destroy_srq(conf.srq), "a shared receive queue with a queue pair");
    expect_busy(ibv_destroy_comp_channel(conf.events), "a channel with a completion queue");
    vt_expect_alive(&p);
    vt_disconnect(&p);
    VT_OK(ibv_destroy_srq(conf.srq));
    VT_OK(ibv_destroy_comp_channel(conf.events));
    return vt_close();
}
