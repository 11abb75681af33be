/* Completion channels and asynchronous events, as programs see them. */
#include <stdlib.h>
#include <sys/socket.h>

#include "shm/chan.h"
#include "verbs/hca.h"

void hca_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                   const uint32_t *handed_out)
{
    pthread_mutex_lock(mutex);
    while (*completed != *handed_out) {
        pthread_cond_wait(cond, mutex);
    }
    pthread_mutex_unlock(mutex);
}

HCA_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
    struct hca_ctx *c = to_ctx(ctx);
    struct hca_chan *chan = proc_is_forked() ? NULL : calloc(1, sizeof(*chan));
    int err;

    if (!chan) {
        return FAIL_WITH(ENOMEM);
    }
    err = chan_open(&chan->index, &chan->chan.fd, c->host, c->hca, false);
    if (err) {
        free(chan);
        return FAIL_WITH(-err);
    }
    chan->chan.context = ctx;
    return &chan->chan;
}

HCA_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchan)
{
    struct hca_chan *chan = container_of(ibchan, struct hca_chan, chan);
    int users;

    pthread_mutex_lock(&ibchan->context->mutex);
    users = ibchan->refcnt;
    pthread_mutex_unlock(&ibchan->context->mutex);
    if (users) {
        return EBUSY;
    }
    if (!proc_is_forked()) {
        chan_close(chan->index, ibchan->fd);
    }
    free(chan);
    return 0;
}

/* Under the channel's lock. */
static void make_unreadable(struct shm_chan *c, int fd)
{
    char byte;

    while (recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
    }
    c->signaled = 0;
}

/* Takes one event, if there is one; the last one makes the descriptor unreadable. */
static bool take_cq(struct shm_chan *c, int fd, uint64_t *user)
{
    bool found;

    chan_lock(c);
    found = c->head != SHM_NONE;
    if (found) {
        struct shm_cq *q = &shm.cqs[c->head];

        *user = q->user;
        if (--q->events == 0) {
            c->head = q->next;
            if (c->head == SHM_NONE) {
                c->tail = SHM_NONE;
            }
        }
    }
    if (c->head == SHM_NONE) {
        make_unreadable(c, fd);
    }
    lock_drop(&c->lock);
    return found;
}

static bool take_async(struct shm_chan *c, int fd, struct shm_async *event)
{
    bool found;

    chan_lock(c);
    found = c->async_head != c->async_tail;
    if (found) {
        *event = c->async[c->async_head++ % SHM_ASYNC];
    }
    if (c->async_head == c->async_tail) {
        make_unreadable(c, fd);
    }
    lock_drop(&c->lock);
    return found;
}

/* Waits without taking the datagram: whoever takes the last event takes it. */
static int wait_readable(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK) < 0 ? -errno : 0;
}

/* Blocks as the descriptor's flags say. 0 or -errno. */
static int read_cq(uint32_t chan, int fd, uint64_t *user)
{
    int err = 0;

    while (!err && !take_cq(&shm.chans[chan], fd, user)) {
        err = wait_readable(fd);
    }
    return err;
}

static int read_async(uint32_t chan, int fd, struct shm_async *event)
{
    int err = 0;

    while (!err && !take_async(&shm.chans[chan], fd, event)) {
        err = wait_readable(fd);
    }
    return err;
}

HCA_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibchan, struct ibv_cq **out,
                                void **cq_context)
{
    struct hca_chan *chan = container_of(ibchan, struct hca_chan, chan);
    uint64_t user;
    int err = proc_is_forked() ? -EPERM : read_cq(chan->index, ibchan->fd, &user);
    struct ibv_cq *cq;

    if (err) {
        errno = -err;
        return -1;
    }
    cq = (struct ibv_cq *)(uintptr_t)user;
    pthread_mutex_lock(&cq->mutex);
    container_of(cq, struct hca_cq, cq)->comp_events++;
    pthread_mutex_unlock(&cq->mutex);
    *out = cq;
    *cq_context = cq->cq_context;
    return 0;
}

HCA_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += n;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

/* What an event is about: its lock, and its two counters. */
struct subject {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    uint32_t *completed, *handed_out;
};

static bool find_subject(struct ibv_async_event *event, struct subject *s)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
        struct hca_cq *cq = container_of(event->element.cq, struct hca_cq, cq);

        *s = (struct subject){&cq->cq.mutex, &cq->cq.cond, &cq->cq.async_events_completed,
                              &cq->async_events};
        return true;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
        struct hca_qp *qp = container_of(event->element.qp, struct hca_qp, qp);

        *s = (struct subject){&qp->qp.mutex, &qp->qp.cond, &qp->qp.events_completed,
                              &qp->async_events};
        return true;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
        struct hca_srq *srq = container_of(event->element.srq, struct hca_srq, srq);

        *s = (struct subject){&srq->srq.mutex, &srq->srq.cond, &srq->srq.events_completed,
                              &srq->async_events};
        return true;
    }
    default:
        return false;
    }
}

HCA_EXPORT int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    struct shm_async e;
    struct subject s;
    int err = proc_is_forked() ? -EPERM : read_async(to_ctx(ctx)->chan, ctx->async_fd, &e);

    if (err) {
        errno = -err;
        return -1;
    }
    event->event_type = (enum ibv_event_type)e.type;
    event->element.qp = (struct ibv_qp *)(uintptr_t)e.element;
    if (find_subject(event, &s)) {
        pthread_mutex_lock(s.mutex);
        (*s.handed_out)++;
        pthread_mutex_unlock(s.mutex);
    } else {
        event->element.port_num = (int)e.port;
    }
    return 0;
}

HCA_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct subject s;

    if (find_subject(event, &s)) {
        pthread_mutex_lock(s.mutex);
        (*s.completed)++;
        pthread_cond_signal(s.cond);
        pthread_mutex_unlock(s.mutex);
    }
}
