/* More completions than the queue has room for: an asynchronous event says so. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "an overrun completion queue raises a CQ error event");
    struct vt_conf conf = vt_conf();
    conf.cqe = 1;
    conf.depth = 512;
    vt_connect(&p, &conf);
    int room = p.a.scq->cqe;
    VT_CHECK(room >= 1, "asked for 1 entry, got %d", room);
    for (int i = 0; i < room + 8; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8);
        if (vt_post(&p.a, &w)) {
            VT_CHECK(i > room, "only %d posts taken, the completion queue has %d entries", i, room);
            break;
        }
    }
    vt_wait_event(IBV_EVENT_CQ_ERR, VT_WAIT_MS);
    vt_disconnect(&p);
    return vt_close();
}
