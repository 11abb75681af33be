/* Both queues take as many requests as was agreed, then say ENOMEM and which one was too many. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a full send or receive queue refuses the next request with ENOMEM");
    struct vt_conf conf = vt_conf();
    conf.depth = 8;
    conf.min_rnr_timer = 1;
    vt_connect(&p, &conf);
    VT_CHECK(p.a.cap.max_send_wr >= 8 && p.a.cap.max_recv_wr >= 8,
             "asked for 8 places, expected at least as many, got %u and %u", p.a.cap.max_send_wr,
             p.a.cap.max_recv_wr);
    /* Nothing receives: no send completes, none leaves its place. */
    for (uint32_t i = 0; i < p.a.cap.max_send_wr; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, i, 0, 8);
        VT_OK(vt_post(&p.a, &w));
    }
    struct vt_wr more[2] = {vt_wr(&p.a, IBV_WR_SEND, 98, 0, 8), vt_wr(&p.a, IBV_WR_SEND, 99, 0, 8)};
    struct ibv_send_wr *bad = NULL;
    more[0].wr.sg_list = &more[0].sge;
    more[0].wr.next = &more[1].wr;
    more[1].wr.sg_list = &more[1].sge;
    int rc = ibv_post_send(p.a.qp, &more[0].wr, &bad);
    VT_CHECK(rc == ENOMEM, "a post to a full send queue: expected ENOMEM, got %s",
             rc ? vt_errname(rc) : "success");
    VT_CHECK(bad == &more[0].wr, "expected bad_wr to name the first request that was refused");

    for (uint32_t i = 0; i < p.b.cap.max_recv_wr; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 8));
    }
    for (uint32_t i = 0; i < p.a.cap.max_send_wr && i < p.b.cap.max_recv_wr; i++) {
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        VT_WC(p.b.rcq, i, IBV_WC_SUCCESS);
    }
    for (uint32_t i = 0; i < p.a.cap.max_recv_wr; i++) {
        VT_OK(vt_recv(&p.a, i, 0, 8));
    }
    rc = vt_recv(&p.a, 99, 0, 8);
    VT_CHECK(rc == ENOMEM, "a post to a full receive queue: expected ENOMEM, got %s",
             rc ? vt_errname(rc) : "success");
    vt_disconnect(&p);
    return vt_close();
}
