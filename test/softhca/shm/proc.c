#include "shm/life.h"
#include "shm/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shm/shm.h"

uint32_t proc_self = SHM_NONE;
static pthread_mutex_t attach_mutex = PTHREAD_MUTEX_INITIALIZER;
static int32_t attached_pid;
static const struct proc_hooks *above;

static long env_number(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && *value) {
            return strtol(value, NULL, 10);
        }
    }
    return -1;
}

/* There are more processes than hosts for them: a run without them would not be what was asked. */
static void refuse(long size, uint32_t hosts, uint32_t per_host)
{
    if (atomic_exchange(&shm.head->refused, 1) == 0) {
        fprintf(stderr,
                "softhca: %ld processes on %u hosts of at most %u each: start fewer, or allow more "
                "with softhca-run --per-host\n",
                size, hosts, per_host);
    }
    _exit(2);
}

static long launcher_rank(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID", NULL};

    return env_number(ranks);
}

/* Ranks fill hosts in blocks when the launcher says how many there are, else in turn. */
static uint32_t choose_host(long rank, uint32_t arrival)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    uint32_t hosts = shm.head->conf.hosts;
    long size = env_number(sizes), needed;
    const char *named = getenv("SOFTHCA_HOST");
    uint32_t per_host;

    if (named && *named) {
        return (uint32_t)strtoul(named, NULL, 10) % hosts;
    }
    if (rank < 0) {
        return arrival % hosts;
    }
    per_host = shm.head->conf.per_host;
    needed = size > rank ? size : rank + 1;
    if (per_host && needed > (long)hosts * per_host) {
        refuse(needed, hosts, per_host);
    }
    if (size > (long)hosts) {
        long block = (size + hosts - 1) / hosts;

        return (uint32_t)(rank / block) % hosts;
    }
    return (uint32_t)rank % hosts;
}

__attribute__((destructor)) static void detach(void)
{
    if (proc_self == SHM_NONE || attached_pid != getpid()) {
        return;
    }
    above->end();
    above->free_all(proc_self);
    /* Below 0 before it is counted out: who dies in between is not counted out again. */
    atomic_store(&shm.procs[proc_self].pid, -getpid());
    atomic_fetch_sub(&shm.head->live, 1);
    atomic_store(&shm.procs[proc_self].pid, 0);
    thread_forget();
    proc_self = SHM_NONE;
}

/* Frees everything that dead processes left. Who leaves by itself gives its slot back meanwhile, and another process may have it: only the
 * slot that is still the dead one's is taken. */
static void reap(void)
{
    uint32_t high = atomic_load(&shm.head->procs.high);

    for (uint32_t i = 0; i < high; i++) {
        int32_t pid = atomic_load(&shm.procs[i].pid);

        if (i != proc_self && proc_is_left(i) &&
            atomic_compare_exchange_strong(&shm.procs[i].pid, &pid, -getpid())) {
            if (pid > 0) {
                atomic_fetch_sub(&shm.head->live, 1);
            }
            above->free_all(i);
            atomic_store(&shm.procs[i].pid, 0);
        }
    }
}

static void in_child(void)
{
    proc_self = SHM_NONE;
    thread_forget();
    above->forked();
    pthread_mutex_init(&attach_mutex, NULL);
}

/* Without a lock: the caller has no place in the thread table yet. */
static int claim_slot(uint32_t *slot)
{
    for (uint32_t i = 0; i < SHM_PROCS; i++) {
        int32_t free = 0;

        if (atomic_compare_exchange_strong(&shm.procs[i].pid, &free, -getpid())) {
            uint32_t high = atomic_load(&shm.head->procs.high);

            while (high < i + 1 &&
                   !atomic_compare_exchange_weak(&shm.head->procs.high, &high, i + 1)) {
            }
            *slot = i;
            return 0;
        }
    }
    fprintf(stderr, "softhca: more than %d processes; start fewer\n", SHM_PROCS);
    return -ENOMEM;
}

static int take_slot(void)
{
    uint32_t slot;
    int err = claim_slot(&slot);
    struct shm_proc *p;
    uint32_t arrival;
    long rank;

    if (err) {
        return err;
    }
    p = &shm.procs[slot];
    p->generation++;
    p->start_time = life_start_time(getpid());
    p->pend_head[0] = p->pend_head[1] = SHM_NONE;
    atomic_store(&p->pending, 0);
    atomic_store(&p->mrs, 0);
    atomic_store(&p->locked_bytes, 0);
    rank = launcher_rank();
    arrival = rank < 0 ? atomic_fetch_add(&shm.head->arrived, 1) : 0;
    p->host = choose_host(rank, arrival);
    p->rank = rank < 0 ? arrival : (uint32_t)rank;
    /* Counted before it can be found: a death in between leaves one too many, never one too few. */
    atomic_fetch_add(&shm.head->live, 1);
    atomic_store(&p->pid, getpid());
    proc_self = slot;
    lock_take(&shm.head->attach_lock);
    reap();
    lock_drop(&shm.head->attach_lock);
    return 0;
}

static int map_path(const char *dir, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int err;

    if (fd < 0) {
        return -errno;
    }
    err = shm_map(dir, fd, 0, 0);
    close(fd);
    return err;
}

static int map_file(void)
{
    static bool registered;
    char path[256];
    const char *dir = getenv("SOFTHCA_DIR");
    int err;

    if (!dir) {
        fprintf(stderr, "softhca: SOFTHCA_DIR is not set: start programs with softhca-run\n");
        return -ENODEV;
    }
    snprintf(path, sizeof(path), "%s/shm", dir);
    err = shm.head ? 0 : map_path(dir, path);
    if (err) {
        fprintf(stderr, "softhca: %s: %s: %s\n", path, strerror(-err),
                shm_advice(err, "start programs with softhca-run of the same build"));
        return err;
    }
    if (!registered) {
        pthread_atfork(NULL, NULL, in_child);
        registered = true;
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    return 0;
}

int proc_attach(const struct proc_hooks *hooks)
{
    int err;

    pthread_mutex_lock(&attach_mutex);
    err = 0;
    above = hooks;
    if (proc_self == SHM_NONE) {
        err = map_file();
        err = err ? err : take_slot();
        attached_pid = getpid();
    }
    pthread_mutex_unlock(&attach_mutex);
    return err;
}

bool proc_is_forked(void)
{
    return proc_self == SHM_NONE;
}
