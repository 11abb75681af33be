/* A completion queue changes its size and keeps what is in it; it never gets smaller than that. */
#include "vt.h"

enum { N = 8 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a resized completion queue keeps its completions");
    struct vt_conf conf = vt_conf();
    conf.depth = 2 * N;
    conf.cqe = N;
    vt_connect(&p, &conf);
    for (uint64_t i = 0; i < N; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, i, 0, 64);
        VT_OK(vt_post(&p.a, &w));
    }
    VT_CHECK(vt_poll(p.a.scq, &(struct ibv_wc){0}, VT_WAIT_MS), "expected completion 0");
    usleep(VT_QUIET_MS * 1000); /* the others are in the queue by now */
    int err = ibv_resize_cq(p.a.scq, 4 * N);
    if (err == EOPNOTSUPP || err == ENOSYS) {
        vt_skip("the device does not resize completion queues");
    }
    VT_OK(err);
    VT_CHECK(p.a.scq->cqe >= 4 * N, "cqe: expected at least %d, got %d", 4 * N, p.a.scq->cqe);
    for (uint64_t i = N; i < 2 * N; i++) { /* these would not have fitted before */
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, i, 0, 64);
        VT_OK(vt_post(&p.a, &w));
    }
    usleep(VT_QUIET_MS * 1000);
    if (ibv_resize_cq(p.a.scq, 2) == 0 && p.a.scq->cqe < 2 * N - 1) {
        VT_FAIL("%d completions wait: expected a refusal to shrink to 2, got success", 2 * N - 1);
    }
    for (uint64_t i = 1; i < 2 * N; i++) {
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
    }
    VT_QUIET(p.a.scq);
    VT_REFUSED(ibv_resize_cq(p.a.scq, 0));
    VT_REFUSED(ibv_resize_cq(p.a.scq, vt.dev.max_cqe + 1));
    vt_expect_alive(&p);
    vt_disconnect(&p);
    return vt_close();
}
