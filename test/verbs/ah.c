/* Address handles: a wrong port is refused, and one made from a completion leads back to the
 * sender. */
#include "vt.h"

enum { LEN = 64 };

static void send_to(struct vt_side *from, struct vt_side *to, struct ibv_ah *ah, uint32_t qpn)
{
    VT_OK(vt_recv(to, 1, 0, 40 + LEN));
    struct vt_wr w = vt_wr(from, IBV_WR_SEND, 2, 4096, LEN);
    w.wr.wr.ud.ah = ah;
    w.wr.wr.ud.remote_qpn = qpn;
    w.wr.wr.ud.remote_qkey = 0x1234;
    VT_OK(vt_post(from, &w));
    VT_WC(from->scq, 2, IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "an address handle made from a completion leads back");
    struct vt_conf conf = vt_conf();
    conf.type = IBV_QPT_UD;
    vt_connect(&p, &conf);
    struct vt_address to = vt_address(&p.b);
    struct ibv_ah_attr attr = vt_ah_attr(&to);
    struct ibv_ah *ah = VT_PTR(ibv_create_ah(vt.pd, &attr));
    attr.port_num = (uint8_t)(vt.dev.phys_port_cnt + 1);
    VT_NULL(ibv_create_ah(vt.pd, &attr));

    send_to(&p.a, &p.b, ah, to.qpn);
    struct ibv_wc wc = VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    struct ibv_ah *back =
        VT_PTR(ibv_create_ah_from_wc(vt.pd, &wc, (struct ibv_grh *)p.b.buf, (uint8_t)vt.port_num));
    vt_fill(p.b.buf + 4096, LEN, 5);
    send_to(&p.b, &p.a, back, wc.src_qp);
    VT_WC(p.a.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.a.buf + 40, LEN, 5), "expected the answer's bytes");
    VT_OK(ibv_destroy_ah(back));
    VT_OK(ibv_destroy_ah(ah));
    vt_disconnect(&p);
    return vt_close();
}
