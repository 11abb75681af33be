/* A list of requests is taken up to the first bad one, which is named; those before it run. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a list is posted up to its first bad request");
    struct vt_conf conf = vt_conf();
    conf.sig_all = 1;
    vt_connect(&p, &conf);
    struct vt_wr w[4];
    struct ibv_send_wr *bad = NULL;
    vt_fill(p.a.buf, 256, 1);
    for (int i = 0; i < 4; i++) {
        w[i] = vt_wr(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, (size_t)i * 64, 64);
        w[i].wr.send_flags = 0; /* the queue pair signals all */
    }
    for (int i = 0; i < 4; i++) {
        w[i].wr.sg_list = &w[i].sge;
        w[i].wr.next = i < 3 ? &w[i + 1].wr : NULL;
    }
    VT_OK(ibv_post_send(p.a.qp, &w[0].wr, &bad));
    for (uint64_t i = 0; i < 4; i++) {
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
    }
    VT_CHECK(vt_filled(p.b.buf, 256, 1), "expected the bytes of all four");

    w[2].wr.num_sge = (int)p.a.cap.max_send_sge + 1;
    VT_REFUSED(ibv_post_send(p.a.qp, &w[0].wr, &bad));
    VT_CHECK(bad == &w[2].wr, "expected bad_wr to name the third request");
    VT_WC(p.a.scq, 0, IBV_WC_SUCCESS);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_QUIET(p.a.scq);
    vt_disconnect(&p);
    return vt_close();
}
