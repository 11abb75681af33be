/*
 * A lock in shared memory that survives the death of its holder, and sections that tell when nobody
 * can hold a reference any more.
 *
 * lock_take() spins, yields, and after a while looks whether the holder's process still lives; the
 * lock of a dead one is taken over. All data under a lock is changed so that a stop between any two
 * stores leaves it usable, or so that it can be mended: the lock then stays `broken` until that is
 * done.
 */
#ifndef SOFTHCA_LOCK_H
#define SOFTHCA_LOCK_H

#include "shm/layout.h"

/* A thread's place in the thread table + 1, and above that how often the place was taken: a place
   that was taken again is another thread. 0 = none yet. */
enum { THREAD_INDEX_BITS = 13 };
extern __thread uint32_t thread_self __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a place in the thread table. */
void thread_join(void);
void lock_take_slow(struct lock *lock);

static inline uint32_t thread_id(void)
{
    if (__builtin_expect(thread_self == 0, 0)) {
        thread_join();
    }
    return thread_self;
}

static inline bool lock_try(struct lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->holder, &free, thread_id(),
                                                   memory_order_acquire, memory_order_relaxed);
}

/* For callers that come again: fails while another holds it, but not for ever when that one is dead. */
bool lock_try_again(struct lock *lock);

static inline void lock_take(struct lock *lock)
{
    if (!lock_try(lock)) {
        lock_take_slow(lock);
    }
}

static inline void lock_drop(struct lock *lock)
{
    atomic_store_explicit(&lock->holder, 0, memory_order_release);
}

/*
 * A section: between enter and leave the thread may follow references to objects of any process.
 * grace_wait() returns when every section that was open at its call has been left (or its process
 * has died): memory that was made unreachable before may then be used again. Never wait inside a
 * section.
 */
void section_enter(void);
void section_leave(void);
void grace_wait(void);
/* While on, grace_wait() of this thread does nothing: it has waited once for many objects. */
void grace_skip(bool on);

/* After fork the child has no place in the thread table and owns nothing. */
void thread_forget(void);

#endif
