#include "shm/lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shm/life.h"

enum { SPINS = 100, YIELDS_PER_CHECK = 2000, TRIES_PER_CHECK = 97 };

__thread uint32_t thread_self __attribute__((tls_model("initial-exec")));
static __thread bool skips_grace;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static struct shm_thread *place_of(uint32_t id)
{
    return &shm.threads[(id & ((1u << THREAD_INDEX_BITS) - 1)) - 1];
}

static void thread_leave(void *slot)
{
    struct shm_thread *t = slot;

    if (shm.head && atomic_load(&t->proc) == proc_self + 1) {
        atomic_store(&t->proc, 0);
    }
    thread_self = 0;
}

static void make_key(void)
{
    pthread_key_create(&exit_key, thread_leave);
}

void thread_join(void)
{
    for (uint32_t i = 0; i < SHM_THREADS; i++) {
        uint32_t free = 0;
        uint32_t high, turn;

        if (!atomic_compare_exchange_strong(&shm.threads[i].proc, &free, proc_self + 1)) {
            continue;
        }
        atomic_store(&shm.threads[i].seq, 0);
        high = atomic_load(&shm.head->threads.high);
        while (high < i + 1 &&
               !atomic_compare_exchange_weak(&shm.head->threads.high, &high, i + 1)) {
        }
        turn = (atomic_load(&shm.threads[i].id) >> THREAD_INDEX_BITS) + 1;
        thread_self = turn << THREAD_INDEX_BITS | (i + 1);
        atomic_store(&shm.threads[i].id, thread_self);
        pthread_once(&exit_once, make_key);
        pthread_setspecific(exit_key, &shm.threads[i]);
        return;
    }
    fprintf(stderr, "softhca: more than %d threads use verbs at once; use fewer\n", SHM_THREADS);
    abort();
}

void thread_forget(void)
{
    thread_self = 0;
}

static bool is_holder_dead(uint32_t holder)
{
    struct shm_thread *t = place_of(holder);
    uint32_t proc = atomic_load(&t->proc);

    return proc == 0 || atomic_load(&t->id) != holder || !proc_is_alive(proc - 1);
}

/* What the dead one was doing may be half done: the lock says so. */
static bool inherit(struct lock *lock, uint32_t holder)
{
    if (!is_holder_dead(holder) ||
        !atomic_compare_exchange_strong(&lock->holder, &holder, thread_id())) {
        return false;
    }
    lock->broken = 1;
    return true;
}

/* Whether a process lives costs system calls, so one failure of many asks: a prime number of them,
   or it might always be the same lock of several that are tried in turn. */
bool lock_try_again(struct lock *lock)
{
    static __thread uint32_t failures;
    uint32_t holder;

    if (lock_try(lock)) {
        return true;
    }
    holder = atomic_load_explicit(&lock->holder, memory_order_relaxed);
    return ++failures % TRIES_PER_CHECK == 0 && holder != 0 && inherit(lock, holder);
}

void lock_take_slow(struct lock *lock)
{
    for (uint32_t i = 1;; i++) {
        uint32_t holder = atomic_load_explicit(&lock->holder, memory_order_relaxed);

        if (holder == 0) {
            if (lock_try(lock)) {
                return;
            }
        } else if (i % YIELDS_PER_CHECK == 0 && inherit(lock, holder)) {
            return;
        }
        if (i > SPINS) {
            sched_yield();
        }
    }
}

void section_enter(void)
{
    struct shm_thread *t = place_of(thread_id());
    uint64_t seq = atomic_load_explicit(&t->seq, memory_order_relaxed);

    atomic_exchange(&t->seq, seq + 1);
}

void section_leave(void)
{
    struct shm_thread *t = place_of(thread_self);
    uint64_t seq = atomic_load_explicit(&t->seq, memory_order_relaxed);

    atomic_store_explicit(&t->seq, seq + 1, memory_order_release);
}

static void wait_for_thread(struct shm_thread *t)
{
    uint64_t seq = atomic_load(&t->seq);

    for (uint32_t i = 1; (seq & 1) && atomic_load(&t->seq) == seq; i++) {
        uint32_t proc = atomic_load(&t->proc);

        if (proc == 0 || (i % YIELDS_PER_CHECK == 0 && !proc_is_alive(proc - 1))) {
            return;
        }
        sched_yield();
    }
}

void grace_wait(void)
{
    uint32_t high;
    const struct shm_thread *self;

    if (skips_grace) {
        return;
    }
    high = atomic_load(&shm.head->threads.high);
    self = thread_self ? place_of(thread_self) : NULL;
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < high; i++) {
        if (&shm.threads[i] != self) {
            wait_for_thread(&shm.threads[i]);
        }
    }
}

void grace_skip(bool on)
{
    skips_grace = on;
}
