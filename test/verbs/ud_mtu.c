/* A datagram is one packet: the MTU fits, one byte more does not; without a receive it is gone. */
#include "vt.h"

static struct vt_wr datagram(struct vt_pair *p, struct ibv_ah *ah, uint64_t id, size_t len)
{
    struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, id, 0, len);
    w.wr.wr.ud.ah = ah;
    w.wr.wr.ud.remote_qpn = p->b.qp->qp_num;
    w.wr.wr.ud.remote_qkey = 0x1234;
    return w;
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv,
            "a datagram fits into one packet or is refused; nobody waits for a receive");
    struct vt_conf conf = vt_conf();
    conf.type = IBV_QPT_UD;
    vt_connect(&p, &conf);
    struct vt_address to = vt_address(&p.b);
    struct ibv_ah_attr attr = vt_ah_attr(&to);
    struct ibv_ah *ah = VT_PTR(ibv_create_ah(vt.pd, &attr));
    size_t mtu = 128u << vt.port.active_mtu;

    struct vt_wr w = datagram(&p, ah, 1, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_QUIET(p.b.rcq);
    VT_OK(vt_recv(&p.b, 2, 0, 40 + mtu));
    VT_QUIET(p.b.rcq);

    vt_fill(p.a.buf, mtu, 1);
    w = datagram(&p, ah, 3, mtu);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 3, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == 40 + mtu, "byte_len: expected %zu, got %u", 40 + mtu, wc.byte_len);
    VT_CHECK(vt_filled(p.b.buf + 40, mtu, 1), "expected the bytes sent");

    VT_OK(vt_recv(&p.b, 4, 0, VT_BUF));
    w = datagram(&p, ah, 5, mtu + 1);
    if (vt_post(&p.a, &w) == 0) { /* then it may end either way, but nothing may arrive */
        VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "expected a completion, got none");
    }
    VT_QUIET(p.b.rcq);
    VT_OK(ibv_destroy_ah(ah));
    vt_disconnect(&p);
    return vt_close();
}
