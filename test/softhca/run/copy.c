#include "run/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/life.h"
#include "shm/shm.h"

enum { CHUNK_MAX = 4096, CHUNKS_MAX = 16 };

/*
 * Bounce mode, for systems that refuse process_vm_readv/writev between processes: every process has
 * a thread, its agent, that copies between its own memory and a piece of the shared file on
 * request. The requester waits for it, so copies stay one-sided for the program. The agent's copies
 * are done by preadv and pwritev on the file: memory that is not there is an error, not a crash.
 */
enum { IDLE, ASKED, ANSWERED, STOPPED, CHECK_MS = 200 };

static int file = -1;
static pthread_t thread;
static bool runs;

static void wait_while(_Atomic uint32_t *word, uint32_t value, int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    syscall(SYS_futex, word, FUTEX_WAIT, value, ms ? &t : NULL, NULL, 0);
}

static void set_and_wake(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

static uint64_t offset_of(const struct shm_agent *a)
{
    return (uint64_t)((const char *)a->bytes - shm.base);
}

/* Between the pieces, which are the caller's own memory, and the agent's part of the file. */
static int move(const struct iovec *iov, uint32_t n, uint64_t bytes, uint64_t offset, bool to_file)
{
    ssize_t moved = to_file ? pwritev(file, iov, (int)n, (off_t)offset)
                            : preadv(file, iov, (int)n, (off_t)offset);

    return moved == (ssize_t)bytes ? 0 : -EFAULT;
}

static void *agent_main(void *arg)
{
    struct shm_agent *a = arg;

    for (;;) {
        uint32_t state = atomic_load(&a->state);
        uint32_t asked;

        if (state == STOPPED) {
            return NULL;
        }
        if (state != ASKED) {
            wait_while(&a->state, state, 0);
            continue;
        }
        a->result = move(a->iov, a->n, a->length, offset_of(a), a->to_file);
        asked = ASKED;
        if (atomic_compare_exchange_strong(&a->state, &asked, ANSWERED)) {
            set_and_wake(&a->state, ANSWERED);
        }
    }
}

/* False when the agent's process has died. */
static bool await_answer(struct shm_agent *a, uint32_t proc)
{
    while (atomic_load(&a->state) == ASKED) {
        wait_while(&a->state, ASKED, CHECK_MS);
        if (atomic_load(&a->state) == ASKED && !proc_is_alive(proc)) {
            return false;
        }
    }
    return true;
}

/* One chunk through another process's agent; its lock is held. */
static int ask(struct shm_agent *a, uint32_t proc, const struct pieces *p, bool to_file)
{
    memcpy(a->iov, p->iov, p->n * sizeof(a->iov[0]));
    a->n = p->n;
    a->length = p->bytes;
    a->to_file = to_file;
    set_and_wake(&a->state, ASKED);
    return await_answer(a, proc) && atomic_load(&a->state) == ANSWERED ? a->result : -ESRCH;
}

static int copy_chunk(struct shm_agent *a, uint32_t other, const struct pieces *from,
                      const struct pieces *to)
{
    bool is_push = other == to->proc;
    int err;

    if (is_push) {
        err = move(from->iov, from->n, from->bytes, offset_of(a), true);
        return err ? err : ask(a, other, to, false);
    }
    err = ask(a, other, from, true);
    return err ? err : move(to->iov, to->n, to->bytes, offset_of(a), false);
}

static int agent_copy(const struct pieces *from, const struct pieces *to)
{
    bool from_here = from->proc == SHM_NONE || from->proc == proc_self;
    bool to_here = to->proc == SHM_NONE || to->proc == proc_self;
    uint32_t other = !to_here ? to->proc : !from_here ? from->proc : SHM_NONE;
    struct shm_agent *a = &shm.agents[other == SHM_NONE ? proc_self : other];
    struct lock *lock = other == SHM_NONE ? &a->own_lock : &a->lock;
    int err = 0;

    lock_take(lock);
    if (lock->broken && other != SHM_NONE) { /* a dead requester's chunk may be under way */
        await_answer(a, other);
        lock->broken = 0;
    }
    for (uint64_t at = 0; at < from->bytes && !err; at += AGENT_BYTES) {
        struct pieces f, t;
        uint64_t n = from->bytes - at < AGENT_BYTES ? from->bytes - at : AGENT_BYTES;

        pieces_slice(from, at, n, &f);
        pieces_slice(to, at, n, &t);
        if (other != SHM_NONE) {
            err = copy_chunk(a, other, &f, &t);
        } else { /* both here: a part of the file that the agent does not use */
            uint64_t offset = offset_of(a) + AGENT_BYTES;

            err = move(f.iov, f.n, n, offset, true);
            err = err ? err : move(t.iov, t.n, n, offset, false);
        }
    }
    lock_drop(lock);
    return err;
}

int agent_start(void)
{
    sigset_t all, before;
    struct shm_agent *a = &shm.agents[proc_self];
    char path[sizeof(shm.head->dir) + 8];
    int err;

    snprintf(path, sizeof(path), "%s/shm", shm.head->dir);
    if (file < 0) {
        file = open(path, O_RDWR | O_CLOEXEC);
    }
    if (file < 0) {
        return -errno;
    }
    atomic_store(&a->state, IDLE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&thread, NULL, agent_main, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    runs = err == 0;
    return -err;
}

void agent_stop(void)
{
    if (runs) {
        set_and_wake(&shm.agents[proc_self].state, STOPPED);
        pthread_join(thread, NULL);
        runs = false;
    }
}

void agent_forget(void)
{
    runs = false;
}

static int explain(int error)
{
    static bool said;

    if (error == EPERM && !said) {
        said = true;
        fprintf(stderr,
                "softhca: the system refuses process_vm_readv/writev between processes: allow "
                "ptrace (container: --cap-add SYS_PTRACE or a seccomp profile that has both "
                "calls), or start with softhca-run --bounce\n");
    }
    return error == ESRCH ? -ESRCH : error == EPERM ? -EPERM : -EFAULT;
}

int copy_whole(const struct pieces *from, const struct pieces *to)
{
    bool is_push;
    uint32_t other;
    pid_t pid;
    ssize_t n;

    if (shm.head->conf.bounce) {
        return agent_copy(from, to);
    }
    is_push = from->proc == SHM_NONE || from->proc == proc_self;
    other = is_push ? to->proc : from->proc;
    pid = other == SHM_NONE || other == proc_self ? getpid() : atomic_load(&shm.procs[other].pid);
    if (pid <= 0) {
        return -ESRCH;
    }
    n = is_push ? process_vm_writev(pid, from->iov, from->n, to->iov, to->n, 0)
                : process_vm_readv(pid, to->iov, to->n, from->iov, from->n, 0);
    if (n == (ssize_t)from->bytes) {
        return 0;
    }
    return explain(n < 0 ? errno : EFAULT);
}

static int copy_range(const struct pieces *from, const struct pieces *to, uint64_t at,
                      uint64_t bytes)
{
    struct pieces f, t;

    pieces_slice(from, at, bytes, &f);
    pieces_slice(to, at, bytes, &t);
    return copy_whole(&f, &t);
}

/* Adversarial mode: the tail lands first, in chunks of random size. */
static int copy_tail_first(const struct pieces *from, const struct pieces *to)
{
    uint64_t end = from->bytes;

    for (int i = 0; end > 0; i++) {
        uint64_t bytes = i < CHUNKS_MAX ? 1 + shm_random(CHUNK_MAX) : end;
        int err;

        bytes = bytes < end ? bytes : end;
        err = copy_range(from, to, end - bytes, bytes);
        if (err) {
            return err;
        }
        end -= bytes;
        if (shm_random(4) == 0) {
            sched_yield();
        }
    }
    return 0;
}

int copy_pieces(const struct pieces *from, const struct pieces *to)
{
    const uint64_t most = 1u << 30; /* the system moves less than 2 GiB at once */

    if (from->bytes == 0) {
        return 0;
    }
    if (shm.head->conf.adversarial) {
        return copy_tail_first(from, to);
    }
    if (from->bytes <= most && to->bytes == from->bytes) {
        return copy_whole(from, to);
    }
    for (uint64_t at = 0; at < from->bytes; at += most) {
        uint64_t bytes = from->bytes - at < most ? from->bytes - at : most;
        int err = copy_range(from, to, at, bytes);

        if (err) {
            return err;
        }
    }
    return 0;
}
