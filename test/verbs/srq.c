/* A shared receive queue serves its queue pairs in the order its receives were posted. */
#include "vt.h"

enum { N = 12 };

int main(int argc, char **argv)
{
    struct vt_pair p, q;
    vt_open(argc, argv, "a shared receive queue gives out its receives in order");
    struct vt_conf conf = vt_conf();
    struct ibv_srq_init_attr init = {.attr = {.max_wr = N, .max_sge = 1}};
    conf.srq = VT_PTR(ibv_create_srq(vt.pd, &init));
    VT_CHECK(init.attr.max_wr >= N, "asked for %d receives, got %u", N, init.attr.max_wr);
    vt_connect(&p, &conf);
    vt_connect(&q, &conf);
    for (uint64_t i = 0; i < N; i++) {
        VT_OK(vt_recv(&p.b, 100 + i, i * 64, 64));
    }
    for (uint64_t i = 0; i < N; i++) {
        struct vt_pair *from = i % 3 == 1 ? &q : &p;
        vt_fill(from->a.buf, 64, (unsigned)i);
        struct vt_wr w = vt_wr(&from->a, IBV_WR_SEND, i, 0, 64);
        VT_OK(vt_post(&from->a, &w));
        VT_WC(from->a.scq, i, IBV_WC_SUCCESS);
        struct ibv_wc wc = VT_WC(from->b.rcq, 100 + i, IBV_WC_SUCCESS);
        VT_CHECK(wc.qp_num == from->b.qp->qp_num, "message %d: expected queue pair %u, got %u",
                 (int)i, from->b.qp->qp_num, wc.qp_num);
        VT_CHECK(vt_filled(p.b.buf + i * 64, 64, (unsigned)i), "message %d: wrong bytes", (int)i);
    }
    for (uint32_t i = 0; i < init.attr.max_wr; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 64));
    }
    int rc = vt_recv(&p.b, 99, 0, 64);
    VT_CHECK(rc == ENOMEM, "a full shared receive queue: expected ENOMEM, got %s",
             rc ? vt_errname(rc) : "success");
    vt_disconnect(&p);
    vt_disconnect(&q);
    VT_OK(ibv_destroy_srq(conf.srq));
    return vt_close();
}
