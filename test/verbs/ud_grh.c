/* A datagram arrives behind 40 bytes for the GRH, with its sender's number. */
#include "vt.h"

#include <arpa/inet.h>

enum { LEN = 100 };

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a datagram arrives behind 40 bytes of GRH, from src_qp");
    struct vt_conf conf = vt_conf();
    conf.type = IBV_QPT_UD;
    vt_connect(&p, &conf);
    struct vt_address to = vt_address(&p.b), from = vt_address(&p.a);
    struct ibv_ah_attr attr = vt_ah_attr(&to);
    struct ibv_ah *ah = VT_PTR(ibv_create_ah(vt.pd, &attr));
    vt_fill(p.a.buf, LEN, 1);
    VT_OK(vt_recv(&p.b, 1, 0, 40 + LEN));
    struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND_WITH_IMM, 2, 0, LEN);
    w.wr.imm_data = htonl(77);
    w.wr.wr.ud.ah = ah;
    w.wr.wr.ud.remote_qpn = to.qpn;
    w.wr.wr.ud.remote_qkey = 0x1234;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == 40 + LEN, "byte_len: expected %d, got %u", 40 + LEN, wc.byte_len);
    VT_CHECK(wc.src_qp == from.qpn, "src_qp: expected %u, got %u", from.qpn, wc.src_qp);
    VT_CHECK(wc.imm_data == htonl(77) && (wc.wc_flags & IBV_WC_WITH_IMM), "expected immediate 77");
    VT_CHECK(vt_filled(p.b.buf + 40, LEN, 1), "expected the bytes sent behind the GRH");
    VT_CHECK(!(wc.wc_flags & IBV_WC_GRH) == !vt.is_roce, "flag GRH: expected %d", vt.is_roce);
    if (!vt.is_roce) {
        VT_CHECK(wc.slid == vt.port.lid, "slid: expected %u, got %u", vt.port.lid, wc.slid);
    }

    /* Another Q_Key: silently dropped, and the receive is still there. */
    VT_OK(vt_recv(&p.b, 3, 0, 40 + LEN));
    w.wr.wr.ud.remote_qkey = 0x4321;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    VT_QUIET(p.b.rcq);
    VT_OK(ibv_destroy_ah(ah));
    vt_disconnect(&p);
    return vt_close();
}
