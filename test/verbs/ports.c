/* What a port and a device tell about themselves holds together and stays the same. */
#include "vt.h"

static void check_gids(void)
{
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    for (int i = 0; i < vt.port.gid_tbl_len && i < 256; i++) {
        VT_OK(ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, i, &gid));
    }
    VT_REFUSED(ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, vt.port.gid_tbl_len, &gid));
    VT_REFUSED(ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, -1, &gid));
    VT_OK(ibv_query_gid_ex(vt.ctx, (uint32_t)vt.port_num, (uint32_t)vt.gid_index, &entry, 0));
    VT_CHECK(!memcmp(&entry.gid, &vt.gid, 16), "two queries tell two GIDs");
    bool is_ib = entry.gid_type == IBV_GID_TYPE_IB;
    VT_CHECK(is_ib == !vt.is_roce, "GID type: got %u on a port with%s RoCE", entry.gid_type,
             vt.is_roce ? "" : "out");
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "port and device attributes hold together");
    struct ibv_port_attr port;
    for (int i = 0; i < 10; i++) {
        memset(&port, 0, sizeof(port));
        VT_OK(ibv_query_port(vt.ctx, (uint8_t)vt.port_num, &port));
        VT_CHECK(port.lid == vt.port.lid && port.state == vt.port.state &&
                     port.active_mtu == vt.port.active_mtu &&
                     port.gid_tbl_len == vt.port.gid_tbl_len &&
                     port.max_msg_sz == vt.port.max_msg_sz,
                 "query %d of the port differs from the first", i + 2);
    }
    VT_REFUSED(ibv_query_port(vt.ctx, 0, &port));
    VT_REFUSED(ibv_query_port(vt.ctx, (uint8_t)(vt.dev.phys_port_cnt + 1), &port));
    VT_CHECK(vt.port.active_mtu <= vt.port.max_mtu && vt.port.active_mtu >= IBV_MTU_256,
             "active MTU %d, max MTU %d", vt.port.active_mtu, vt.port.max_mtu);
    VT_CHECK(vt.port.max_msg_sz >= 1u << 20, "max_msg_sz %u is less than 1 MiB",
             vt.port.max_msg_sz);
    VT_CHECK(vt.is_roce || (vt.port.lid > 0 && vt.port.lid < 0xc000), "LID 0x%x is no unicast LID",
             vt.port.lid);
    check_gids();
    uint16_t pkey;
    VT_OK(ibv_query_pkey(vt.ctx, (uint8_t)vt.port_num, 0, &pkey));
    VT_CHECK(pkey != 0, "P_Key 0 of the table is invalid");
    VT_REFUSED(ibv_query_pkey(vt.ctx, (uint8_t)vt.port_num, vt.port.pkey_tbl_len, &pkey));
    VT_CHECK(ibv_get_device_guid(vt.ctx->device) == vt.dev.node_guid,
             "the device list and the device attributes tell two GUIDs");
    return vt_close();
}
