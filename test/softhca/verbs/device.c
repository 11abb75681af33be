/* A device: what it and its ports look like, opening it, and what a process leaves there. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/copy.h"
#include "run/pending.h"
#include "run/run.h"
#include "shm/chan.h"
#include "shm/proc.h"
#include "verbs/cq.h"
#include "verbs/hca.h"
#include "verbs/mr.h"
#include "verbs/qp.h"
#include "verbs/wr.h"

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

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
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

static int query_port(struct ibv_context *ctx, uint8_t num, struct ibv_port_attr *attr, size_t size)
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

static int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
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

/* Nobody of a process that is dead or ends is in a section. */
static void free_threads(uint32_t proc)
{
    uint32_t high = atomic_load(&shm.head->threads.high);

    for (uint32_t i = 0; i < high; i++) {
        if (atomic_load(&shm.threads[i].proc) == proc + 1) {
            atomic_store(&shm.threads[i].seq, 0);
            atomic_store(&shm.threads[i].proc, 0);
        }
    }
}

#define EACH(i, table)                                                                             \
    for (uint32_t i = 0; i < shm.head->table.high; i++)                                            \
        if (shm_slot_owner(&shm.head->table, i) == proc)

/* After this nobody finds them any more. */
static void hide_all(uint32_t proc)
{
    EACH(i, qps)
    {
        atomic_store(&shm.qps[i].number, 0);
    }
    EACH(i, srqs)
    {
        atomic_store(&shm.srqs[i].number, 0);
    }
    EACH(i, cqs)
    {
        atomic_store(&shm.cqs[i].number, 0);
    }
    EACH(i, mrs)
    {
        atomic_store(&shm.mrs[i].key, 0);
    }
}

static void free_all(uint32_t proc)
{
    if (proc != proc_self) {
        free_threads(proc);
    }
    hide_all(proc);
    grace_wait();
    pending_clear(proc);
    grace_skip(true);
    EACH(i, qps) /* first: they refer to the others */
    {
        qp_free(i);
    }
    EACH(i, srqs)
    {
        srq_free(i);
    }
    EACH(i, cqs)
    {
        cq_free(i);
    }
    EACH(i, mrs)
    {
        mr_free(i);
    }
    EACH(i, chans)
    {
        chan_free(i);
    }
    grace_skip(false);
    free_threads(proc);
}

/* For most entries that are missing <infiniband/verbs.h> answers EOPNOTSUPP itself; these it calls
   without a check. */
static struct ibv_mw *no_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    return FAIL_WITH(EOPNOTSUPP);
}

static int no_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    return EOPNOTSUPP;
}

static int no_dealloc_mw(struct ibv_mw *mw)
{
    return EOPNOTSUPP;
}

static struct ibv_xrcd *no_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
    return FAIL_WITH(EOPNOTSUPP);
}

static int no_close_xrcd(struct ibv_xrcd *xrcd)
{
    return EOPNOTSUPP;
}

static struct ibv_td *td_alloc(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
    struct ibv_td *td;

    if (attr->comp_mask) {
        return FAIL_WITH(EINVAL);
    }
    td = calloc(1, sizeof(*td));
    if (!td) {
        return FAIL_WITH(ENOMEM);
    }
    td->context = ctx;
    return td;
}

static int td_dealloc(struct ibv_td *td)
{
    free(td);
    return 0;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    return EOPNOTSUPP;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *list, uint32_t n)
{
    return EOPNOTSUPP;
}

static void set_ops(struct hca_ctx *ctx)
{
    struct verbs_context *v = &ctx->vctx;
    struct ibv_context_ops *ops = &v->context.ops;

    v->sz = sizeof(*v);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    ops->poll_cq = cq_poll;
    ops->req_notify_cq = cq_arm;
    ops->post_send = post_send;
    ops->post_recv = post_recv;
    ops->post_srq_recv = srq_post;
    ops->alloc_mw = no_alloc_mw;
    ops->bind_mw = no_bind_mw;
    ops->dealloc_mw = no_dealloc_mw;
    v->query_port = query_port;
    v->query_device_ex = query_device_ex;
    v->query_rt_values = query_rt_values;
    v->create_cq_ex = cq_create_ex;
    v->modify_cq = modify_cq;
    v->create_qp_ex = wr_create_qp_ex;
    v->create_srq_ex = srq_create_ex;
    v->get_srq_num = srq_get_number;
    v->alloc_parent_domain = pd_alloc_parent;
    v->alloc_td = td_alloc;
    v->dealloc_td = td_dealloc;
    v->advise_mr = advise_mr;
    v->open_xrcd = no_open_xrcd;
    v->close_xrcd = no_close_xrcd;
}

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hca_device *devices; /* kept for the life of the process: users keep pointers */
static uint32_t device_count;

static int begin(void)
{
    return shm.head->conf.bounce ? agent_start() : 0;
}

static void end(void)
{
    pending_stop();
    agent_stop();
}

static void forked(void)
{
    pending_forget();
    agent_forget();
}

static int attach(void)
{
    static const struct proc_hooks hooks = {begin, end, forked, free_all};

    pending_resume_by(run_try);
    return proc_attach(&hooks);
}

static void make_device(struct hca_device *d, uint32_t host, uint32_t hca)
{
    d->device.node_type = IBV_NODE_CA;
    d->device.transport_type = IBV_TRANSPORT_IB;
    d->host = host;
    d->hca = hca;
    snprintf(d->device.name, sizeof(d->device.name), "softhca%u", hca);
    snprintf(d->device.dev_name, sizeof(d->device.dev_name), "uverbs%u", hca);
    snprintf(d->device.dev_path, sizeof(d->device.dev_path), "%s/class/infiniband_verbs/uverbs%u",
             shm.head->dir, hca);
    snprintf(d->device.ibdev_path, sizeof(d->device.ibdev_path), "%s/class/infiniband/softhca%u",
             shm.head->dir, hca);
}

static int make_devices(void)
{
    const struct shm_conf *conf = &shm.head->conf;
    uint32_t host = shm.procs[proc_self].host;
    struct hca_device *made;

    if (devices && devices[0].host == host) {
        return 0;
    }
    made = calloc(conf->hcas, sizeof(*made));
    if (!made) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < conf->hcas; i++) {
        make_device(&made[i], host, i);
    }
    devices = made;
    device_count = conf->hcas;
    return 0;
}

HCA_EXPORT struct ibv_device **(ibv_get_device_list)(int *num)
{
    int err;
    struct ibv_device **list;

    if (num) {
        *num = 0;
    }
    err = attach();
    if (err) {
        return FAIL_WITH(err == -ENODEV ? ENOSYS : -err);
    }
    pthread_mutex_lock(&list_mutex);
    err = make_devices();
    list = err ? NULL : calloc(device_count + 1, sizeof(*list));
    for (uint32_t i = 0; list && i < device_count; i++) {
        list[i] = &devices[i].device;
    }
    pthread_mutex_unlock(&list_mutex);
    if (!list) {
        return FAIL_WITH(ENOMEM);
    }
    if (num) {
        *num = (int)device_count;
    }
    return list;
}

HCA_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

HCA_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

HCA_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return (int)container_of(device, struct hca_device, device)->hca;
}

HCA_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct hca_device *d = container_of(device, struct hca_device, device);
    struct hca_ctx *c = attach() == 0 ? calloc(1, sizeof(*c)) : NULL;
    struct ibv_context *ctx;
    int err;

    if (!c) {
        return FAIL_WITH(ENOMEM);
    }
    c->device = d;
    c->host = d->host;
    c->hca = d->hca;
    ctx = &c->vctx.context;
    ctx->device = device;
    ctx->num_comp_vectors = 1;
    pthread_mutex_init(&ctx->mutex, NULL);
    ctx->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (ctx->cmd_fd < 0) {
        goto err_free;
    }
    err = chan_open(&c->chan, &ctx->async_fd, c->host, c->hca, true);
    if (err) {
        errno = -err;
        goto err_close;
    }
    set_ops(c);
    return ctx;

err_close:
    close(ctx->cmd_fd);
err_free:
    free(c);
    return NULL;
}

HCA_EXPORT int ibv_close_device(struct ibv_context *ctx)
{
    struct hca_ctx *c = to_ctx(ctx);

    chan_close(c->chan, ctx->async_fd);
    close(ctx->cmd_fd);
    pthread_mutex_destroy(&ctx->mutex);
    free(c);
    return 0;
}
