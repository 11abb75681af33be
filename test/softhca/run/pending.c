#include "run/pending.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "shm/proc.h"
#include "shm/chan.h"
#include "shm/shm.h"

enum {
    ROLE_SOURCE,
    ROLE_TARGET,
    BATCH = 32,
    TICK_NS = 1000000,
    LEAST_NS = 20000,
    CROWD = 8,
    IDLE_TICKS = 20
};

static void (*resume)(uint32_t qp);
static pthread_mutex_t timer_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t timer_cond = PTHREAD_COND_INITIALIZER;
static pthread_t timer;
static bool timer_exists, timer_stops;
static _Atomic bool timer_is_awake;

void pending_resume_by(void (*run)(uint32_t qp))
{
    resume = run;
}

/* Later positions wait for earlier ones, so the earliest time is that of the oldest request. */
static void lower(_Atomic uint64_t *time, uint64_t when)
{
    uint64_t old = atomic_load(time);

    while (when < old && !atomic_compare_exchange_weak(time, &old, when)) {
    }
}

/* In this order: a run that ends between the two takes the time over, or is overruled. */
void pending_due_by(struct shm_qp *qp, uint64_t when)
{
    lower(&qp->next_due, when);
    lower(&qp->due, when);
}

void pending_begin(struct shm_qp *qp)
{
    atomic_store(&qp->next_due, TIME_NEVER);
}

void pending_end(struct shm_qp *qp)
{
    uint64_t due;

    do {
        due = atomic_load(&qp->next_due);
        atomic_store(&qp->due, due);
    } while (atomic_load(&qp->next_due) != due);
}

/* Under the lists' lock: `listed` and `proc` say what belongs there. */
static void link_in(uint32_t index, int role)
{
    struct shm_pend *e = &shm.qps[index].pend[role];
    struct shm_proc *p = &shm.procs[e->proc];

    e->prev = SHM_NONE;
    e->next = p->pend_head[role];
    if (e->next != SHM_NONE) {
        shm.qps[e->next].pend[role].prev = index;
    }
    p->pend_head[role] = index;
    atomic_fetch_add(&p->pending, 1);
}

/* Links all anew that are listed with the process; with `keeps` false none is any more. */
static void make_lists(uint32_t proc, bool keeps)
{
    struct shm_proc *p = &shm.procs[proc];
    uint32_t high = atomic_load(&shm.head->qps.high);

    p->pend_head[ROLE_SOURCE] = p->pend_head[ROLE_TARGET] = SHM_NONE;
    atomic_store(&p->pending, 0);
    for (uint32_t i = 0; i < 2 * high; i++) {
        struct shm_pend *e = &shm.qps[i / 2].pend[i % 2];

        if (e->listed && e->proc == proc) {
            e->listed = keeps;
            if (keeps) {
                link_in(i / 2, (int)(i % 2));
            }
        }
    }
    p->pend_lock.broken = 0;
}

static void lock_lists(uint32_t proc)
{
    lock_take(&shm.procs[proc].pend_lock);
    if (shm.procs[proc].pend_lock.broken) {
        make_lists(proc, true);
    }
}

static bool try_own_lists(void)
{
    struct lock *lock = &shm.procs[proc_self].pend_lock;

    if (!lock_try_again(lock)) {
        return false;
    }
    if (lock->broken) {
        make_lists(proc_self, true);
    }
    return true;
}

static void enlist(uint32_t index, int role, uint32_t proc)
{
    struct shm_pend *e = &shm.qps[index].pend[role];

    lock_lists(proc);
    if (!e->listed) {
        e->proc = proc;
        e->listed = 1;
        link_in(index, role);
    }
    lock_drop(&shm.procs[proc].pend_lock);
}

static void delist(uint32_t index, int role)
{
    struct shm_pend *e = &shm.qps[index].pend[role];
    struct shm_proc *p;

    if (!e->listed) {
        return;
    }
    p = &shm.procs[e->proc];
    lock_lists(e->proc);
    if (e->listed) {
        if (e->prev != SHM_NONE) {
            shm.qps[e->prev].pend[role].next = e->next;
        } else {
            p->pend_head[role] = e->next;
        }
        if (e->next != SHM_NONE) {
            shm.qps[e->next].pend[role].prev = e->prev;
        }
        e->listed = 0;
        atomic_fetch_sub(&p->pending, 1);
    }
    lock_drop(&p->pend_lock);
}

/* Copies what is due of one list, oldest entries last. */
static uint32_t collect(int role, uint64_t now, uint32_t *found)
{
    struct shm_proc *p = &shm.procs[proc_self];
    uint32_t n = 0;

    if (!try_own_lists()) {
        return 0;
    }
    for (uint32_t i = p->pend_head[role]; i != SHM_NONE && n < BATCH;
         i = shm.qps[i].pend[role].next) {
        if (atomic_load_explicit(&shm.qps[i].due, memory_order_relaxed) <= now) {
            found[n++] = i;
        }
    }
    lock_drop(&p->pend_lock);
    return n;
}

void pending_run(void)
{
    uint32_t found[BATCH];
    uint64_t now;

    if (proc_self == SHM_NONE ||
        atomic_load_explicit(&shm.procs[proc_self].pending, memory_order_relaxed) == 0) {
        return;
    }
    now = shm_now();
    for (int role = ROLE_SOURCE; role <= ROLE_TARGET; role++) {
        uint32_t n = collect(role, now, found);

        for (uint32_t i = 0; i < n; i++) {
            resume(found[i]);
        }
    }
}

/* When the earliest of what this process has sent is due, at most `limit`. */
static uint64_t earliest(uint64_t limit)
{
    struct shm_proc *p = &shm.procs[proc_self];

    if (try_own_lists()) {
        for (uint32_t i = p->pend_head[ROLE_SOURCE]; i != SHM_NONE;
             i = shm.qps[i].pend[ROLE_SOURCE].next) {
            uint64_t due = atomic_load_explicit(&shm.qps[i].due, memory_order_relaxed);

            limit = due < limit ? due : limit;
        }
        lock_drop(&p->pend_lock);
    }
    return limit;
}

/* On a wire a tick may end early, when something is due: times that are told are times that hold.
 */
static void sleep_a_tick(void)
{
    bool is_crowd = atomic_load(&shm.head->live) > CROWD && !shm.head->wired;
    uint64_t now = shm_now(), tick = is_crowd ? 4 * TICK_NS : TICK_NS;
    uint64_t until = shm.head->wired ? earliest(now + tick) : now + tick;
    uint64_t least = now + LEAST_NS;
    long pause = (long)((until > least ? until : least) - now);

    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
}

static void *timer_main(void *unused)
{
    int idle = 0;

    pthread_mutex_lock(&timer_mutex);
    while (!timer_stops) {
        if (idle > IDLE_TICKS) {
            atomic_store(&timer_is_awake, false);
            if (atomic_load(&shm.procs[proc_self].pending) == 0) {
                pthread_cond_wait(&timer_cond, &timer_mutex);
            }
            atomic_store(&timer_is_awake, true);
            idle = 0;
            continue;
        }
        pthread_mutex_unlock(&timer_mutex);
        sleep_a_tick();
        idle = atomic_load(&shm.procs[proc_self].pending) ? 0 : idle + 1;
        pending_run();
        pthread_mutex_lock(&timer_mutex);
    }
    pthread_mutex_unlock(&timer_mutex);
    return NULL;
}

static void wake_timer(void)
{
    sigset_t all, before;

    if (atomic_load_explicit(&timer_is_awake, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&timer_mutex);
    if (!timer_exists && !timer_stops) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        timer_is_awake = true;
        timer_exists = pthread_create(&timer, NULL, timer_main, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    } else {
        pthread_cond_signal(&timer_cond);
    }
    pthread_mutex_unlock(&timer_mutex);
}

void pending_stop(void)
{
    bool joins;

    pthread_mutex_lock(&timer_mutex);
    timer_stops = true;
    joins = timer_exists;
    pthread_cond_signal(&timer_cond);
    pthread_mutex_unlock(&timer_mutex);
    if (joins) {
        pthread_join(timer, NULL);
    }
}

void pending_forget(void)
{
    pthread_mutex_init(&timer_mutex, NULL);
    pthread_cond_init(&timer_cond, NULL);
    timer_exists = timer_stops = false;
    timer_is_awake = false;
}

/* With its owner, without the lock. */
static void list(uint32_t index)
{
    enlist(index, ROLE_SOURCE, shm.qps[index].proc);
}

void pending_drop(uint32_t index)
{
    delist(index, ROLE_SOURCE);
    delist(index, ROLE_TARGET);
}

void pending_clear(uint32_t proc)
{
    lock_take(&shm.procs[proc].pend_lock);
    make_lists(proc, false);
    lock_drop(&shm.procs[proc].pend_lock);
}

void pending_update(uint32_t index, bool is_unfinished)
{
    struct shm_qp *qp = &shm.qps[index];

    if (!is_unfinished) {
        if (qp->pend[ROLE_SOURCE].listed | qp->pend[ROLE_TARGET].listed) {
            pending_drop(index);
        }
        return;
    }
    if (!qp->pend[ROLE_SOURCE].listed) {
        enlist(index, ROLE_SOURCE, qp->proc);
    }
    if (!qp->pend[ROLE_TARGET].listed && qp->peer != SHM_NONE && shm.qps[qp->peer].number &&
        shm.qps[qp->peer].proc != qp->proc) {
        enlist(index, ROLE_TARGET, shm.qps[qp->peer].proc);
    }
    if (qp->proc == proc_self && (qp->due != TIME_NEVER || shm.head->wired)) {
        wake_timer();
    }
}

bool pending_break(uint32_t index, uint32_t event)
{
    struct shm_qp *s = &shm.qps[index];
    uint32_t state = atomic_load(&s->state);

    do {
        if (state == IBV_QPS_ERR || state == IBV_QPS_RESET) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&s->state, &state, IBV_QPS_ERR));
    pending_due_by(s, 0);
    if (event) {
        chan_signal_async(s->ctx, event, s->user, 0);
    }
    list(index);
    return true;
}
