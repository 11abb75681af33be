/* Messages around the MTU and far beyond it arrive whole, by send, write and read. */
#include "vt.h"

static void check_size(struct vt_pair *p, size_t len)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    for (unsigned i = 0; i < 3; i++) {
        bool is_read = ops[i] == IBV_WR_RDMA_READ;
        unsigned char *from = is_read ? p->b.buf : p->a.buf, *to = is_read ? p->a.buf : p->b.buf;
        vt_fill(from, len, i + (unsigned)len);
        memset(to, 0xee, VT_BUF);
        struct vt_wr w = vt_wr(&p->a, ops[i], len, 0, len);
        VT_OK(i == 0 ? vt_recv(&p->b, len, 0, VT_BUF) : 0);
        VT_OK(vt_post(&p->a, &w));
        VT_WC(p->a.scq, len, IBV_WC_SUCCESS);
        if (i == 0) {
            struct ibv_wc wc = VT_WC(p->b.rcq, len, IBV_WC_SUCCESS);
            VT_CHECK(wc.byte_len == len, "byte_len: expected %zu, got %u", len, wc.byte_len);
        }
        VT_CHECK(vt_filled(to, len, i + (unsigned)len), "opcode %d, %zu bytes: wrong bytes", ops[i],
                 len);
        VT_CHECK(len == VT_BUF || to[len] == 0xee, "opcode %d, %zu bytes: more were written",
                 ops[i], len);
    }
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "messages of every length arrive whole and no longer");
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    size_t mtu = 128u << vt.port.active_mtu;
    size_t sizes[] = {1,   2,       3,       63,          64,         65,    mtu - 1,
                      mtu, mtu + 1, 2 * mtu, 3 * mtu + 5, VT_BUF - 1, VT_BUF};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_size(&p, sizes[i]);
    }
    vt_disconnect(&p);
    return vt_close();
}
