/* Both ports of a device are usable, each under its own address. */
#include "vt.h"

int main(int argc, char **argv)
{
    vt_open(argc, argv, "queue pairs on two ports of one device reach each other");
    struct ibv_port_attr other;
    int first = vt.port_num, second = first == 1 ? 2 : 1;
    if (vt.dev.phys_port_cnt < 2) {
        vt_skip("the device has one port");
    }
    VT_OK(ibv_query_port(vt.ctx, (uint8_t)second, &other));
    if (other.state != IBV_PORT_ACTIVE || (vt.is_roce && !vt.strict)) {
        vt_skip("port %d is not active, or its network may be another", second);
    }
    union ibv_gid gid;
    VT_OK(ibv_query_gid(vt.ctx, (uint8_t)second, vt.gid_index, &gid));
    VT_CHECK(vt.is_roce || other.lid != vt.port.lid, "both ports have LID %u", other.lid);
    VT_CHECK(memcmp(&gid, &vt.gid, sizeof(gid)), "both ports have the same GID");
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_side_create(&p.a, vt.pd, &conf, false);
    vt_side_create(&p.b, vt.pd, &conf, true);
    p.a.peer = &p.b;
    p.b.peer = &p.a;
    struct vt_address a = vt_address(&p.a), b = vt_address(&p.b);
    b.lid = other.lid;
    b.gid = gid;
    vt_side_connect(&p.a, &conf, &b);
    vt.port_num = second;
    vt_side_connect(&p.b, &conf, &a);
    vt.port_num = first;
    vt_expect_alive(&p);
    vt_disconnect(&p);
    return vt_close();
}
