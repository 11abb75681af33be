/* Unsignaled requests complete silently, and hold their place until a later completion is polled.
 */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "unsignaled requests hold their place until a later completion is polled");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    int depth = (int)p.a.cap.max_send_wr;

    /* What a correct program does: every last request of a full queue is signaled. */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < depth; i++) {
            struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, (size_t)i * 8, 8);
            w.wr.send_flags = i == depth - 1 ? IBV_SEND_SIGNALED : 0;
            int rc = vt_post(&p.a, &w);
            VT_CHECK(!rc, "request %d of %d in round %d: expected success, got %s", i + 1, depth,
                     round, vt_errname(rc));
        }
        VT_WC(p.a.scq, (uint64_t)depth - 1, IBV_WC_SUCCESS);
    }
    VT_QUIET(p.a.scq);

    /* Without a signaled one the queue stays full, though all requests were executed long ago. */
    for (int i = 0; i < depth; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8);
        w.wr.send_flags = 0;
        VT_OK(vt_post(&p.a, &w));
    }
    VT_QUIET(p.a.scq);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 99, 0, 8);
    int rc = vt_post(&p.a, &w);
    VT_CHECK(!rc || rc == ENOMEM, "a post to a full queue: expected ENOMEM, got %s",
             vt_errname(rc));
    if (!rc) {
        vt_differs("the place of an unsignaled request was free before a later completion");
    }
    vt_disconnect(&p);
    return vt_close();
}
