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

/* One event of a channel: a completion queue's, or an asynchronous one. */
struct taken {
    uint64_t user;
    struct shm_async async;
};

/* Takes it, if there is one; the last one makes the descriptor unreadable. */
static bool take(struct shm_chan *c, int fd, struct taken *t)
{
    bool found;

    chan_lock(c);
    found = c->head != SHM_NONE || c->async_head != c->async_tail;
    if (c->head != SHM_NONE) {
        struct shm_cq *q = &shm.cqs[c->head];

        t->user = q->user;
        if (--q->events == 0) {
            c->head = q->next;
        }
    } else if (found) {
        t->async = c->async[c->async_head++ % SHM_ASYNC];
    }
    if (c->head == SHM_NONE) {
        c->tail = SHM_NONE;
        if (c->async_head == c->async_tail) {
            make_unreadable(c, fd);
        }
    }
    lock_drop(&c->lock);
    return found;
}

/* Blocks as the descriptor's flags say, without taking the datagram: whoever takes the last event
   takes it. 0 or -errno. */
static int wait_for_event(uint32_t chan, int fd, struct taken *t)
{
    char byte;

    if (proc_is_forked()) {
        return -EPERM;
    }
    while (!take(&shm.chans[chan], fd, t)) {
        if (recv(fd, &byte, 1, MSG_PEEK) < 0) {
            return -errno;
        }
    }
    return 0;
}

HCA_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *ibchan, struct ibv_cq **out,
                                void **cq_context)
{
    struct hca_chan *chan = container_of(ibchan, struct hca_chan, chan);
    struct taken t;
    int err = wait_for_event(chan->index, ibchan->fd, &t);
    struct ibv_cq *cq;

    if (err) {
        errno = -err;
        return -1;
    }
    cq = (struct ibv_cq *)(uintptr_t)t.user;
    pthread_mutex_lock(&cq->mutex);
    container_of(cq, struct hca_cq, cq)->comp_events++;
    pthread_mutex_unlock(&cq->mutex);
    *out = cq;
    *cq_context = cq->cq_context;
    return 0;
}

/* Who waits at its end until its events are acknowledged: its lock, and the count of those that were
   handed out; NULL for events of a port. */
static uint32_t *find_count(const struct ibv_async_event *event, pthread_mutex_t **mutex)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        *mutex = &event->element.cq->mutex;
        return &container_of(event->element.cq, struct hca_cq, cq)->async_events;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        *mutex = &event->element.qp->mutex;
        return &container_of(event->element.qp, struct hca_qp, qp)->async_events;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        *mutex = &event->element.srq->mutex;
        return &container_of(event->element.srq, struct hca_srq, srq)->async_events;
    default:
        return NULL;
    }
}

HCA_EXPORT int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    struct taken t;
    pthread_mutex_t *mutex;
    uint32_t *count;
    int err = wait_for_event(to_ctx(ctx)->chan, ctx->async_fd, &t);

    if (err) {
        errno = -err;
        return -1;
    }
    event->event_type = (enum ibv_event_type)t.async.type;
    event->element.qp = (struct ibv_qp *)(uintptr_t)t.async.element;
    count = find_count(event, &mutex);
    if (count) {
        pthread_mutex_lock(mutex);
        (*count)++;
        pthread_mutex_unlock(mutex);
    } else {
        event->element.port_num = (int)t.async.port;
    }
    return 0;
}
