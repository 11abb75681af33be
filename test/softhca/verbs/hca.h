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

#define MR_WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS (MR_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_HUGETLB)

/* Protection domains are numbers in shared memory; a parent domain has its parent's. */
uint32_t pd_id(struct ibv_pd *pd);
void pd_use(struct ibv_pd *pd, int change);
struct ibv_pd *pd_alloc_parent(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr);

/* Where [addr, addr + length) of a key is in the owner's memory; false: the HCA refuses it.
   Only inside a section. */
bool mr_translate(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr, uint64_t length,
                  uint32_t access, void **where);
void mr_free(uint32_t index);

/* A queue's memory, of ring->slots times ring->stride bytes. 0 or -errno. */
int ring_make(struct shm_ring *ring);
void ring_free(struct shm_ring *ring, uint32_t proc);

/* Resolves and checks an address given by a program. 0 or an errno. */
int av_make(const struct hca_ctx *ctx, const struct ibv_ah_attr *attr, struct shm_av *av);
/* The port an address leads to, SHM_NONE when it leads nowhere. */
uint32_t av_port(const struct shm_av *av);
bool av_is_multicast(const struct shm_av *av);

/* An IPv6 group, or an IPv4 one as RoCE writes it. */
bool gid_is_multicast(const union ibv_gid *gid);

/* The queue pairs of a multicast group that hear what leaves the port, into SHM_MEMBERS places. */
uint32_t mcast_members(uint32_t from, const struct shm_av *av, uint32_t *members);
/* Whether the queue pair is in a group; with `leaves` it is in none any more. */
bool mcast_is_member(uint32_t qp, bool leaves);

/* What a port asks the subnet administrator for, and its answer. */
struct group_record {
    union ibv_gid gid; /* zero: one that no other group has */
    uint16_t lid;      /* the answer's */
    uint32_t qkey, port;
};

/* Lets the port into a group, which begins with its first port. 0 or an errno. */
int group_enter(struct group_record *r);
void group_leave(const struct group_record *r);
/* Of a process that has died. */
void group_forget(uint32_t proc);

/* Completion queues. */
#define CQ_WC_FLAGS (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

struct ibv_cq_ex *cq_create_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
void cq_set_poll_ops(struct hca_cq *cq, uint64_t wc_flags);
int cq_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *cq, int solicited_only);

/*
 * --stalls: the longest time in which nothing moved though everybody was there to see it. A process
 * that has no processor does not poll, so the machine's load is not in it: between two requests, of
 * whomever, the process counts that has polled least. A poll is taken as 1 us, more than a device needs.
 */
void cq_moved(void);
/* For test programs: what comes now, such as MPI_Finalize(), which waits for others by other means, is
   not looked at any more. */
HCA_EXPORT void softhca_stalls_end(void);

/* Makes a completion visible; overrun kills the queue and the queue pairs that use it. */
void cq_push(uint32_t cq, const struct shm_cqe *e);
/* Whoever pushed to it may have died at that: gives the event that is missing. Returns the position
   behind the last completed request of the queue pair that is still to be polled, or 0. */
uint64_t cq_mend(uint32_t cq, uint32_t qp);
/* Removes the completions of a queue pair or shared receive queue (table indexes, SHM_NONE = any).
 */
void cq_clean(uint32_t cq, uint32_t qp);
void cq_free(uint32_t cq);

/* Queue pairs: making them, their states, and where they take their receives from. */
enum { QP_INDEX_BITS = 16 };

struct ibv_qp *qp_create_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
void qp_free(uint32_t index);

/* The index of the queue pair with this number, SHM_NONE when there is none. */
uint32_t qp_find(uint32_t number);

/* Whether both have the same options of their connection. */
bool qp_have_agreed(const struct shm_qp *a, const struct shm_qp *b);

/* Whether packets of one may enter the other: a key of the same partition, not both as limited
   members. Others vanish. */
bool qp_share_partition(const struct shm_qp *a, const struct shm_qp *b);

/* To the error state, with an asynchronous event (0 = none) when it was not there yet. The receive
   queue is flushed now, the send queue when its lock's holder next runs it. */
void qp_kill(uint32_t index, uint32_t event);
void qp_flush_receives(uint32_t index);

/* Shared receive queues, and what they have in common with a queue pair's own. */
struct ibv_srq *srq_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void srq_free(uint32_t index);

/* The memory of a receive queue. 0 or -errno. */
int rq_make(struct shm_rq *rq, uint32_t slots, uint32_t sge);
/* Queues a list of receives under the queue's lock. 0 or an errno. */
int rq_post(struct shm_rq *rq, struct lock *lock, uint32_t max_sge, struct ibv_recv_wr *wr,
            struct ibv_recv_wr **bad);

/* Posting, both ways: lists of work requests, and the builder functions of ibv_wr_*. */
int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* The verb: a queue pair, with a builder when it is asked for. */
struct ibv_qp *wr_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

/*
 * Deferred mode's watch over buffers: what a request sends may not change, be freed or be
 * deregistered before its completion (or that of a later request of its queue pair) was polled: a
 * reliable connection may send it again until then. What is never sent again (UC, UD) is watched
 * only until it has been sent, since protocols above learn of that by other means.
 */

/* Remembers what the source buffers hold. */
void check_posted(const struct shm_qp *qp, struct shm_wqe *wqe);
/* The request is about to land. */
void check_landing(const struct shm_qp *qp, struct shm_wqe *wqe);
/* The completion of the request at `position` was polled: looks at it and all before it. */
void check_polled(uint32_t qp, uint64_t position);

#endif
