/* Inline data is taken by the post: no key, and the buffer is free at once; up to the agreed limit.
 */
#include "vt.h"

enum { WANTED = 64, ROUNDS = 200 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "inline data is copied by the post, up to max_inline_data bytes");
    struct vt_conf conf = vt_conf();
    conf.inline_bytes = WANTED;
    vt_connect(&p, &conf);
    uint32_t limit = p.a.cap.max_inline_data;
    VT_CHECK(limit >= WANTED, "asked for %d inline bytes, got %u", WANTED, limit);
    unsigned char local[WANTED];
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct vt_wr w = vt_wr(&p.a, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 0, WANTED);
        w.sge.addr = (uintptr_t)local;
        w.sge.lkey = 0xdeadbeef;
        w.wr.send_flags |= IBV_SEND_INLINE;
        vt_fill(local, WANTED, i);
        VT_OK(i % 2 ? vt_recv(&p.b, i, 0, WANTED) : 0);
        VT_OK(vt_post(&p.a, &w));
        memset(local, 0xff, WANTED);
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        if (i % 2) {
            VT_WC(p.b.rcq, i, IBV_WC_SUCCESS);
        }
        VT_CHECK(vt_filled(p.b.buf, WANTED, i), "round %u: expected the bytes of the post", i);
    }
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, limit + 1);
    w.wr.send_flags |= IBV_SEND_INLINE;
    VT_REFUSED(vt_post(&p.a, &w));
    w = vt_wr(&p.a, IBV_WR_RDMA_READ, 2, 0, 8);
    w.wr.send_flags |= IBV_SEND_INLINE;
    if (vt_post(&p.a, &w) == 0) {
        vt_differs("an inline READ was taken");
    }
    vt_disconnect(&p);
    return vt_close();
}
