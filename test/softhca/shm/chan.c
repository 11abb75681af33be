#include "shm/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int sender = -1;
static int32_t sender_pid;

static socklen_t name_of(struct sockaddr_un *name, uint32_t index)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    snprintf(name->sun_path, sizeof(name->sun_path), "%.80s/c%u", shm.head->dir, index);
    return sizeof(*name);
}

int chan_open(uint32_t *index, int *fd, uint32_t host, uint32_t hca, bool is_async)
{
    struct sockaddr_un name;
    int err = shm_slot_get(&shm.head->chans, index);
    struct shm_chan *c;
    socklen_t length;

    if (err) {
        return err;
    }
    c = &shm.chans[*index];
    c->generation++;
    c->signaled = 0;
    c->head = c->tail = SHM_NONE;
    c->host = host;
    c->hca = hca;
    c->is_async = is_async;
    c->async_head = c->async_tail = 0;
    *fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    length = name_of(&name, *index);
    unlink(name.sun_path);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&name, length) != 0) {
        err = -errno;
        goto err_close;
    }
    atomic_store(&c->used, 1);
    return 0;

err_close:
    if (*fd >= 0) {
        close(*fd);
    }
    shm_slot_put(&shm.head->chans, *index);
    return err;
}

void chan_free(uint32_t index)
{
    struct sockaddr_un name;
    struct shm_chan *c = &shm.chans[index];

    lock_take(&c->lock);
    atomic_store(&c->used, 0);
    lock_drop(&c->lock);
    name_of(&name, index);
    unlink(name.sun_path);
    shm_slot_put(&shm.head->chans, index);
}

void chan_close(uint32_t index, int fd)
{
    close(fd);
    chan_free(index);
}

/* Under the channel's lock. */
static void make_readable(struct shm_chan *c, uint32_t index)
{
    struct sockaddr_un name;
    socklen_t length;

    if (c->signaled) {
        return;
    }
    if (sender < 0 || sender_pid != getpid()) {
        sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sender_pid = getpid();
    }
    length = name_of(&name, index);
    if (sendto(sender, "e", 1, 0, (struct sockaddr *)&name, length) == 1) {
        c->signaled = 1;
    }
}

static void append(struct shm_chan *c, uint32_t cq)
{
    shm.cqs[cq].next = SHM_NONE;
    *(c->tail == SHM_NONE ? &c->head : &shm.cqs[c->tail].next) = cq;
    c->tail = cq;
}

/* Whoever had the lock before may have died between counting an event and queueing it, or before telling of it. */
static void mend(struct shm_chan *c)
{
    uint32_t high = atomic_load(&shm.head->cqs.high), index = (uint32_t)(c - shm.chans);

    c->head = c->tail = SHM_NONE;
    for (uint32_t i = 0; i < high; i++) {
        struct shm_cq *q = &shm.cqs[i];

        if (q->number && q->chan == index && q->events) {
            append(c, i);
        }
    }
    if (c->used && (c->head != SHM_NONE || c->async_head != c->async_tail)) {
        make_readable(c, index);
    }
    c->lock.broken = 0;
}

void chan_lock(struct shm_chan *c)
{
    lock_take(&c->lock);
    if (c->lock.broken) {
        mend(c);
    }
}

void chan_signal_cq(uint32_t chan, uint32_t cq)
{
    struct shm_chan *c = &shm.chans[chan];

    chan_lock(c);
    if (c->used) {
        if (shm.cqs[cq].events++ == 0) {
            append(c, cq);
        }
        make_readable(c, chan);
    }
    lock_drop(&c->lock);
}

void chan_forget_cq(uint32_t chan, uint32_t cq)
{
    struct shm_chan *c = &shm.chans[chan];
    uint32_t next;

    chan_lock(c);
    next = c->head;
    c->head = c->tail = SHM_NONE;
    while (next != SHM_NONE) { /* all others again, in their order */
        uint32_t i = next;

        next = shm.cqs[i].next;
        if (i != cq) {
            append(c, i);
        }
    }
    shm.cqs[cq].events = 0;
    lock_drop(&c->lock);
}

void chan_signal_async(uint32_t chan, uint32_t type, uint64_t element, uint32_t port)
{
    struct shm_chan *c = &shm.chans[chan];

    chan_lock(c);
    if (c->used && c->async_tail - c->async_head < SHM_ASYNC) {
        struct shm_async *e = &c->async[c->async_tail % SHM_ASYNC];

        e->type = type;
        e->element = element;
        e->port = port;
        c->async_tail++;
        make_readable(c, chan);
    }
    lock_drop(&c->lock);
}

void chan_forget_element(uint32_t chan, uint64_t element)
{
    struct shm_chan *c = &shm.chans[chan];
    uint32_t keep;

    chan_lock(c);
    keep = c->async_head;
    for (uint32_t i = c->async_head; i != c->async_tail; i++) {
        struct shm_async e = c->async[i % SHM_ASYNC];

        if (e.element != element) {
            c->async[keep++ % SHM_ASYNC] = e;
        }
    }
    c->async_tail = keep;
    lock_drop(&c->lock);
}
