/* The objects that a process holds: public verbs structs with our own fields behind them. */
#ifndef SOFTHCA_HCA_H
#define SOFTHCA_HCA_H

#include <infiniband/verbs.h>
#include <errno.h>
#include <stddef.h>

#include "shm/proc.h"
#include "shm/shm.h"

#define HCA_EXPORT                    __attribute__((visibility("default")))
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

struct hca_device {
    struct ibv_device device;
    char zero[512]; /* vendor libraries look behind a device for their own mark */
    uint32_t host, hca;
};

struct hca_ctx {
    struct verbs_context vctx;
    struct hca_device *device;
    uint32_t chan; /* asynchronous events */
    uint32_t host, hca;
};

struct hca_pd {
    struct ibv_pd pd;
    uint32_t id;
    atomic_int users;
    struct hca_pd *parent; /* of a parent domain */
};

struct hca_mr {
    struct ibv_mr mr;
    uint32_t index;
};

struct hca_chan {
    struct ibv_comp_channel chan;
    uint32_t index;
};

struct hca_cq {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex;
    };
    uint32_t index;
    uint32_t comp_events, async_events; /* handed out and not acknowledged: under cq.mutex */
    atomic_int users;
    struct shm_cqe current; /* ibv_start_poll */
    uint32_t wc_flags;
};

enum { HCA_VENDOR = 0x0250f0 }; /* locally administered: nobody's */

struct hca_srq {
    struct ibv_srq srq;
    uint32_t index;
    uint32_t async_events;
    atomic_int users;
};

struct hca_build; /* the request that ibv_wr_* is building */

struct hca_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
    };
    uint32_t index;
    uint32_t async_events;
    struct ibv_qp_init_attr init;
    struct hca_build *build;
};

struct hca_ah {
    struct ibv_ah ah;
    struct shm_av av;
};

static inline struct hca_ctx *to_ctx(struct ibv_context *c)
{
    return container_of(c, struct hca_ctx, vctx.context);
}

static inline struct shm_port *ctx_port(const struct hca_ctx *c, uint32_t num)
{
    const struct shm_conf *conf = &shm.head->conf;
    if (num < 1 || num > conf->ports) {
        return NULL;
    }
    return &shm.ports[(c->host * conf->hcas + c->hca) * conf->ports + num - 1];
}

/* Sets errno and returns NULL: for verbs that return objects. */
#define FAIL_WITH(error) (errno = (error), NULL)

/* What is told of a device and its ports (query.c). */
int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size);
int query_port(struct ibv_context *ctx, uint8_t num, struct ibv_port_attr *attr, size_t size);
int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);

/* A public struct's wait for its events to be acknowledged, as the real library does. */
void hca_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                   const uint32_t *handed_out);

#endif
