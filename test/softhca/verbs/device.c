#include "verbs/hca.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/agent.h"
#include "run/pending.h"
#include "run/run.h"
#include "shm/chan.h"
#include "shm/object.h"
#include "shm/proc.h"

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
    static const struct proc_hooks hooks = {begin, end, forked, object_free_all};
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
    if (devices && devices[0].host == host) {
        return 0;
    }
    struct hca_device *made = calloc(conf->hcas, sizeof(*made));
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
    if (num) {
        *num = 0;
    }
    int err = attach();
    if (err) {
        return FAIL_WITH(err == -ENODEV ? ENOSYS : -err);
    }
    pthread_mutex_lock(&list_mutex);
    err = make_devices();
    struct ibv_device **list = err ? NULL : calloc(device_count + 1, sizeof(*list));
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

HCA_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    struct hca_device *d = container_of(device, struct hca_device, device);
    const struct shm_conf *conf = &shm.head->conf;
    return htobe64(shm.ports[(d->host * conf->hcas + d->hca) * conf->ports].guid - 1);
}

HCA_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct hca_device *d = container_of(device, struct hca_device, device);
    struct hca_ctx *c = attach() == 0 ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        return FAIL_WITH(ENOMEM);
    }
    c->device = d;
    c->host = d->host;
    c->hca = d->hca;
    struct ibv_context *ctx = &c->vctx.context;
    ctx->device = device;
    ctx->num_comp_vectors = 1;
    pthread_mutex_init(&ctx->mutex, NULL);
    ctx->cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (ctx->cmd_fd < 0) {
        goto err_free;
    }
    int err = chan_open(&c->chan, &ctx->async_fd, c->host, c->hca, true);
    if (err) {
        errno = -err;
        goto err_close;
    }
    hca_set_ops(c);
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
