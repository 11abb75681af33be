/* A fenced send starts when the READs before it have landed: it can send what they brought. */
#include "vt.h"

enum { ROUNDS = 100, LEN = 20000, OUT = 32768 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a fenced request waits for the READs before it");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    for (unsigned i = 0; i < ROUNDS; i++) {
        vt_fill(p.b.buf, LEN, i);
        memset(p.a.buf, 0, LEN);
        struct vt_wr read = vt_wr(&p.a, IBV_WR_RDMA_READ, 1, 0, LEN);
        struct vt_wr write = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 2, 0, LEN);
        read.wr.send_flags = 0;
        write.wr.send_flags |= IBV_SEND_FENCE;
        write.wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf + OUT;
        VT_OK(vt_post(&p.a, &read));
        VT_OK(vt_post(&p.a, &write));
        VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf + OUT, LEN, i), "round %u: expected the bytes just read", i);
    }
    vt_disconnect(&p);
    return vt_close();
}
