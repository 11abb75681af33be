/* What a device and its ports look like. */
#include <stdio.h>
#include <string.h>

#include "verbs/hca.h"

HCA_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    struct hca_device *d = container_of(device, struct hca_device, device);
    const struct shm_conf *conf = &shm.head->conf;

    return htobe64(shm.ports[(d->host * conf->hcas + d->hca) * conf->ports].guid - 1);
}

static void fill_device(const struct hca_ctx *c, struct ibv_device_attr *a)
{
    const struct shm_conf *conf = &shm.head->conf;

    memset(a, 0, sizeof(*a));
    snprintf(a->fw_ver, sizeof(a->fw_ver), "software");
    a->node_guid = ibv_get_device_guid(&c->device->device);
    a->sys_image_guid = a->node_guid;
    a->max_mr_size = conf->max_mr_size;
    a->page_size_cap = 0xfffff000;
    a->vendor_id = HCA_VENDOR;
    a->vendor_part_id = 1;
    a->max_qp = SHM_QPS - 2;
    a->max_qp_wr = (int)conf->max_qp_wr;
    a->device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_PORT_ACTIVE_EVENT |
                          IBV_DEVICE_CURR_QP_STATE_MOD;
    a->max_sge = (int)conf->max_sge;
    a->max_sge_rd = (int)conf->max_sge;
    a->max_cq = SHM_CQS - 1;
    a->max_cqe = (int)conf->max_cqe;
    a->max_mr = (int)conf->max_mr;
    a->max_pd = 1 << 20;
    a->max_qp_rd_atom = (int)conf->max_rd_atomic;
    a->max_res_rd_atom = (int)(conf->max_rd_atomic * 1024);
    a->max_qp_init_rd_atom = (int)conf->max_rd_atomic;
    a->atomic_cap = IBV_ATOMIC_HCA;
    a->max_mcast_grp = SHM_GROUPS;
    a->max_mcast_qp_attach = SHM_MEMBERS;
    a->max_total_mcast_qp_attach = SHM_GROUPS * SHM_MEMBERS;
    a->max_ah = conf->no_ah ? 0 : INT32_MAX;
    if (!conf->no_srq) {
        a->max_srq = SHM_SRQS - 1;
        a->max_srq_wr = (int)conf->max_srq_wr;
        a->max_srq_sge = (int)conf->max_sge;
    }
    a->max_pkeys = SHM_PKEYS;
    a->local_ca_ack_delay = 15;
    a->phys_port_cnt = (uint8_t)conf->ports;
}

HCA_EXPORT int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
    fill_device(to_ctx(ctx), attr);
    return 0;
}

int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex full;

    if (input && input->comp_mask) {
        return EINVAL;
    }
    if (size < sizeof(full.orig_attr)) {
        return EINVAL;
    }
    memset(&full, 0, sizeof(full));
    fill_device(to_ctx(ctx), &full.orig_attr);
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = 1000000; /* kHz: stamps are nanoseconds */
    full.phys_port_cnt_ex = shm.head->conf.ports;
    memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

int query_port(struct ibv_context *ctx, uint8_t num, struct ibv_port_attr *attr, size_t size)
{
    const struct shm_conf *conf = &shm.head->conf;
    struct ibv_port_attr a;
    struct shm_port *p = ctx_port(to_ctx(ctx), num);
    bool is_ib;

    if (!p) {
        return EINVAL;
    }
    is_ib = conf->link == IBV_LINK_LAYER_INFINIBAND;
    memset(&a, 0, sizeof(a));
    a.state = (enum ibv_port_state)atomic_load(&p->state);
    a.max_mtu = IBV_MTU_4096;
    a.active_mtu = (enum ibv_mtu)conf->mtu;
    a.gid_tbl_len = SHM_GIDS;
    a.port_cap_flags = is_ib ? IBV_PORT_SM : 0;
    a.max_msg_sz = 1u << 31;
    a.pkey_tbl_len = is_ib ? SHM_PKEYS : 1;
    a.lid = is_ib ? p->lid : 0;
    a.lmc = is_ib ? (uint8_t)conf->lmc : 0;
    a.sm_lid = is_ib ? SHM_FIRST_LID : 0;
    a.max_vl_num = is_ib ? 4 : 1;
    a.active_width = 2;  /* 4x */
    a.active_speed = 64; /* HDR */
    a.phys_state = a.state == IBV_PORT_DOWN ? 3 : 5;
    a.link_layer = (uint8_t)conf->link;
    a.flags = p->needs_grh ? IBV_QPF_GRH_REQUIRED : 0;
    memset(attr, 0, size);
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

HCA_EXPORT int(ibv_query_port)(struct ibv_context *ctx, uint8_t num,
                               struct _compat_ibv_port_attr *attr)
{
    /* Programs of before verbs_context was extended: they end before port_cap_flags2. */
    return query_port(ctx, num, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

HCA_EXPORT int ibv_query_gid(struct ibv_context *ctx, uint8_t num, int index, union ibv_gid *gid)
{
    struct shm_port *p = ctx_port(to_ctx(ctx), num);

    if (!p || index < 0 || index >= SHM_GIDS) {
        errno = EINVAL;
        return -1;
    }
    memset(gid, 0, sizeof(*gid));
    if ((uint32_t)index < p->gids) {
        *gid = p->gid[index];
    }
    return 0;
}

static void fill_gid_entry(const struct shm_port *p, uint32_t index, struct ibv_gid_entry *e)
{
    memset(e, 0, sizeof(*e));
    e->gid = p->gid[index];
    e->gid_index = index;
    e->port_num = p->num;
    e->gid_type = p->gid_type[index];
}

HCA_EXPORT int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t num, uint32_t index,
                                 struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    struct ibv_gid_entry e;
    struct shm_port *p = ctx_port(to_ctx(ctx), num);

    if (flags) {
        return EOPNOTSUPP;
    }
    if (!p || index >= SHM_GIDS) {
        return EINVAL;
    }
    if (index >= p->gids) {
        return ENODATA;
    }
    fill_gid_entry(p, index, &e);
    memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
    return 0;
}

HCA_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
                                        size_t max, uint32_t flags, size_t size)
{
    struct ibv_gid_entry e;
    size_t n = 0;

    if (flags) {
        return -EOPNOTSUPP;
    }
    for (uint32_t num = 1; num <= shm.head->conf.ports; num++) {
        struct shm_port *p = ctx_port(to_ctx(ctx), num);

        for (uint32_t i = 0; i < p->gids; i++, n++) {
            if (n >= max) {
                return -EINVAL;
            }
            fill_gid_entry(p, i, &e);
            memcpy((char *)entries + n * size, &e, size < sizeof(e) ? size : sizeof(e));
        }
    }
    return (ssize_t)n;
}

HCA_EXPORT int ibv_query_gid_type(struct ibv_context *ctx, uint8_t num, unsigned int index,
                                  unsigned int *type);

/* The type as sysfs knows it: 0 = IB or RoCE v1, 1 = RoCE v2. */
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t num, unsigned int index, unsigned int *type)
{
    struct shm_port *p = ctx_port(to_ctx(ctx), num);

    if (!p || index >= p->gids) {
        errno = EINVAL;
        return -1;
    }
    *type = p->gid_type[index] == IBV_GID_TYPE_ROCE_V2;
    return 0;
}

HCA_EXPORT int ibv_query_pkey(struct ibv_context *ctx, uint8_t num, int index, __be16 *pkey)
{
    int keys = shm.head->conf.link == IBV_LINK_LAYER_INFINIBAND ? SHM_PKEYS : 1;
    struct shm_port *p = ctx_port(to_ctx(ctx), num);

    if (!p || index < 0 || index >= keys) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(p->pkey[index]);
    return 0;
}

HCA_EXPORT int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t num, __be16 pkey)
{
    struct shm_port *p = ctx_port(to_ctx(ctx), num);

    for (int i = 0; p && i < SHM_PKEYS; i++) {
        if (p->pkey[i] == be16toh(pkey)) {
            return i;
        }
    }
    errno = EINVAL;
    return -1;
}

int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
    uint32_t asked = values->comp_mask;

    values->comp_mask = 0;
    if (asked & IBV_VALUES_MASK_RAW_CLOCK) {
        uint64_t now = shm_now();

        values->raw_clock.tv_sec = 0;
        values->raw_clock.tv_nsec = (long)now;
        values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    }
    return 0;
}
