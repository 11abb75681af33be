/* A device: finding and opening it, and what a process leaves there. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/pending.h"
#include "run/run.h"
#include "shm/chan.h"
#include "shm/proc.h"
#include "verbs/hca.h"

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
    group_forget(proc);
    grace_skip(false);
    free_threads(proc);
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

static void set_ops(struct hca_ctx *ctx)
{
    struct verbs_context *v = &ctx->vctx;
    struct ibv_context_ops *ops = &v->context.ops;

    v->sz = sizeof(*v);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    /* Without an entry <infiniband/verbs.h> answers EOPNOTSUPP itself. */
    ops->poll_cq = cq_poll;
    ops->req_notify_cq = cq_arm;
    ops->post_send = post_send;
    ops->post_recv = post_recv;
    ops->post_srq_recv = srq_post;
    v->query_port = query_port;
    v->query_device_ex = query_device_ex;
    v->query_rt_values = query_rt_values;
    v->create_cq_ex = cq_create_ex;
    v->create_qp_ex = wr_create_qp_ex;
    v->create_srq_ex = srq_create_ex;
    v->alloc_parent_domain = pd_alloc_parent;
    v->alloc_td = td_alloc;
    v->dealloc_td = td_dealloc;
}

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hca_device *devices; /* kept for the life of the process: users keep pointers */
static uint32_t device_count;

static int attach(void)
{
    static const struct proc_hooks hooks = {pending_stop, pending_forget, free_all};

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

/* Not supported, and without an entry that <infiniband/verbs.h> would miss: libibverbs' own would
   look for a driver behind our objects. */
HCA_EXPORT struct ibv_context *ibv_import_device(int fd)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                            uint64_t iova, int fd, int access)
{
    return FAIL_WITH(EOPNOTSUPP);
}
