/* What a program has through the connection manager's device: descriptors, numbered objects, events. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs/cm.h"

enum { CHANNELS = 256 };

struct cm_event {
    struct cm_event *next;
    struct cm_object *of;
    struct rdma_ucm_event_resp text;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct cm_object *objects;
static struct cm_event *events; /* oldest first */
static uint32_t numbers;
static _Atomic int channel[CHANNELS]; /* descriptors + 1 */
static _Atomic uint32_t channels;     /* no channel at or above */

bool cm_is_channel(int fd)
{
    uint32_t n = atomic_load_explicit(&channels, memory_order_acquire);

    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&channel[i], memory_order_relaxed) == fd + 1 && fd >= 0) {
            return true;
        }
    }
    return false;
}

/* Its counter is the number of unread events: read and poll work on it as on the kernel's. */
int cm_open(int flags)
{
    int fd =
        eventfd(0, EFD_SEMAPHORE | (flags & O_CLOEXEC) | (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));

    pthread_mutex_lock(&mutex);
    for (uint32_t i = 0; fd >= 0 && i < CHANNELS; i++) {
        if (atomic_load(&channel[i]) == 0) {
            atomic_store(&channel[i], fd + 1);
            if (i >= atomic_load(&channels)) {
                atomic_store(&channels, i + 1);
            }
            pthread_mutex_unlock(&mutex);
            return fd;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (fd >= 0) {
        close(fd);
        errno = EMFILE;
    }
    return -1;
}

struct cm_object *cm_find(int fd, uint32_t number, bool is_membership)
{
    struct cm_object *o = objects;

    while (o && (o->number != number || o->channel != fd || (o->id != NULL) != is_membership)) {
        o = o->next;
    }
    return o;
}

struct cm_object *cm_make(int fd, uint64_t user, struct cm_object *id)
{
    struct cm_object *o = calloc(1, sizeof(*o));

    if (o) {
        o->number = numbers++;
        o->channel = fd;
        o->user = user;
        o->id = id;
        o->port = SHM_NONE;
        o->next = objects;
        objects = o;
    }
    return o;
}

static void take_out(struct cm_event **at)
{
    struct cm_event *e = *at;
    eventfd_t taken;

    *at = e->next;
    if (eventfd_read(e->of->channel, &taken) < 0) { /* it is there: it was counted */
        abort();
    }
    free(e);
}

static void drop(struct cm_object *o)
{
    struct cm_object **at = &objects;

    for (struct cm_event **e = &events; *e;) {
        if ((*e)->of == o) {
            take_out(e);
        } else {
            e = &(*e)->next;
        }
    }
    if (o->has_joined) {
        group_leave(&o->group);
    }
    while (*at != o) {
        at = &(*at)->next;
    }
    *at = o->next;
    free(o);
}

void cm_drop(struct cm_object *id)
{
    for (struct cm_object *o = objects, *next; o; o = next) {
        next = o->next;
        if (o->id == id) {
            drop(o);
        }
    }
    drop(id);
}

void cm_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void cm_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

void cm_close(int fd)
{
    pthread_mutex_lock(&mutex);
    for (struct cm_object *o = objects; o;) {
        if (o->channel == fd && !o->id) {
            cm_drop(o);
            o = objects;
        } else {
            o = o->next;
        }
    }
    for (uint32_t i = 0; i < CHANNELS; i++) {
        if (atomic_load(&channel[i]) == fd + 1) {
            atomic_store(&channel[i], 0);
        }
    }
    pthread_mutex_unlock(&mutex);
}

struct cm_event *cm_event_new(void)
{
    return calloc(1, sizeof(struct cm_event));
}

void cm_tell(struct cm_object *of, struct cm_event *e, uint32_t what, int status,
             const struct rdma_ucm_ud_param *about)
{
    struct cm_event **at = &events;

    e->of = of;
    e->text.uid = of->user;
    e->text.id = of->id ? of->id->number : of->number;
    e->text.event = what;
    e->text.status = (uint32_t)status;
    if (about) {
        e->text.param.ud = *about;
    }
    while (*at) {
        at = &(*at)->next;
    }
    *at = e;
    if (eventfd_write(of->channel, 1) < 0) {
        return; /* closed meanwhile */
    }
}

static bool take_event(int fd, void *answer)
{
    struct cm_event **at = &events;

    while (*at && (*at)->of->channel != fd) {
        at = &(*at)->next;
    }
    if (!*at) {
        return false;
    }
    (*at)->of->reported++;
    if ((*at)->of->id) {
        (*at)->of->id->reported++;
    }
    memcpy(answer, &(*at)->text, sizeof((*at)->text));
    take_out(at);
    return true;
}

/* Waits without the mutex. */
int cm_next_event(int fd, void *answer, size_t room)
{
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    int flags = fcntl(fd, F_GETFL);
    bool has_come = false;

    if (room < sizeof(struct rdma_ucm_event_resp)) {
        return -ENOSPC;
    }
    while (!has_come) {
        int n = poll(&waits, 1, flags & O_NONBLOCK ? 0 : -1);

        if (n <= 0) {
            return n < 0 ? -errno : -EAGAIN;
        }
        pthread_mutex_lock(&mutex);
        has_come = take_event(fd, answer);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
