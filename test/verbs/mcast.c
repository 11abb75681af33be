/* Multicast: every queue pair attached to the group gets the datagram, detached ones do not. */
#include "vt.h"

enum { LEN = 64, MLID = 0xc010 };

static union ibv_gid group(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x12, 0xa0, 0x1b, [14] = 0x77, [15] = 0x01}};
    if (vt.is_roce) { /* 239.1.2.3, as an IPv4 group is written in a GID */
        memset(gid.raw, 0, 10);
        memcpy(gid.raw + 10, (unsigned char[]){0xff, 0xff, 239, 1, 2, 3}, 6);
    }
    return gid;
}

static void send_to_group(struct vt_side *from, struct ibv_ah *ah)
{
    struct vt_wr w = vt_wr(from, IBV_WR_SEND, 2, 4096, LEN);
    w.wr.wr.ud.ah = ah;
    w.wr.wr.ud.remote_qpn = 0xffffff;
    w.wr.wr.ud.remote_qkey = 0x1234;
    VT_OK(vt_post(from, &w));
    VT_WC(from->scq, 2, IBV_WC_SUCCESS);
}

static void check_kinds(const union ibv_gid *gid)
{
    struct vt_side rc;
    struct vt_conf conf = vt_conf();
    vt_side_create(&rc, vt.pd, &conf, false);
    VT_REFUSED(ibv_attach_mcast(rc.qp, gid, MLID));
    vt_side_destroy(&rc);
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    struct vt_side c;
    vt_open(argc, argv, "all queue pairs attached to a group get its datagrams");
    struct vt_conf conf = vt_conf();
    union ibv_gid gid = group();
    check_kinds(&gid);
    conf.type = IBV_QPT_UD;
    vt_connect(&p, &conf);
    vt_side_create(&c, vt.pd, &conf, true);
    struct vt_address self = vt_address(&c);
    vt_side_connect(&c, &conf, &self);
    int rc = ibv_attach_mcast(p.b.qp, &gid, MLID);
    if (rc == EOPNOTSUPP || rc == ENOSYS) {
        vt_skip("the device has no multicast");
    }
    VT_CHECK(!rc, "ibv_attach_mcast: expected success, got %s", vt_errname(rc));
    VT_OK(ibv_attach_mcast(c.qp, &gid, MLID));
    struct vt_address to = {.lid = MLID, .gid = gid};
    struct ibv_ah_attr attr = vt_ah_attr(&to);
    attr.is_global = 1;
    attr.grh.dgid = gid;
    attr.grh.sgid_index = (uint8_t)vt.gid_index;
    attr.grh.hop_limit = 1;
    struct ibv_ah *ah = VT_PTR(ibv_create_ah(vt.pd, &attr));

    vt_fill(p.a.buf + 4096, LEN, 3);
    VT_OK(vt_recv(&p.b, 10, 0, 40 + LEN));
    VT_OK(vt_recv(&c, 11, 0, 40 + LEN));
    send_to_group(&p.a, ah);
    struct ibv_wc wc;
    if (!vt_poll(p.b.rcq, &wc, VT_WAIT_MS / 5)) {
        vt_differs("a datagram to a group did not reach the port it came from");
        vt_skip("no datagram to a group comes back on this port");
    }
    VT_CHECK(wc.wr_id == 10 && wc.status == IBV_WC_SUCCESS, "expected receive 10, got %llu '%s'",
             (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
    VT_WC(c.rcq, 11, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.b.buf + 40, LEN, 3) && vt_filled(c.buf + 40, LEN, 3),
             "expected the bytes sent at both");

    VT_OK(ibv_detach_mcast(c.qp, &gid, MLID));
    VT_REFUSED(ibv_detach_mcast(c.qp, &gid, MLID));
    VT_OK(vt_recv(&p.b, 12, 0, 40 + LEN));
    VT_OK(vt_recv(&c, 13, 0, 40 + LEN));
    send_to_group(&p.a, ah);
    VT_WC(p.b.rcq, 12, IBV_WC_SUCCESS);
    VT_QUIET(c.rcq);
    VT_OK(ibv_detach_mcast(p.b.qp, &gid, MLID));
    VT_OK(ibv_destroy_ah(ah));
    vt_side_destroy(&c);
    vt_disconnect(&p);
    return vt_close();
}
