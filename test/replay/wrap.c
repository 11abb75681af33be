/*
 * The kernel, as the ranks see it: rank.so and the software HCA's front are linked with
 * -Wl,--wrap for each of these. What has no place in one process is kept here (who holds which
 * record lock, which descriptors go with a rank that dies); the rest is the real call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "causes.h"
#include "faults.h"
#include "memory.h"
#include "scheduler.h"
#include "story.h"

extern __typeof__(getrlimit) __real_getrlimit;
extern __typeof__(kill) __real_kill;
extern __typeof__(getpid) __real_getpid;
extern __typeof__(open) __real_open;
extern __typeof__(openat) __real_openat;
extern __typeof__(socket) __real_socket;
extern __typeof__(close) __real_close;
extern __typeof__(fdopendir) __real_fdopendir;
extern __typeof__(fcntl) __real_fcntl;
extern __typeof__(posix_fallocate) __real_posix_fallocate;
extern __typeof__(statvfs) __real_statvfs;
extern __typeof__(fstatvfs) __real_fstatvfs;
extern __typeof__(getenv) __real_getenv;
extern __typeof__(fopen) __real_fopen;
extern __typeof__(fputs) __real_fputs;
extern __typeof__(sysconf) __real_sysconf;

enum { DESCRIPTORS = 4096, LOCKS = 256, FREE_MIB = 512 };

static signed char owner[DESCRIPTORS]; /* rank + 1 */
static struct record {
    dev_t device;
    ino_t file;
    int rank; /* + 1; 0: free */
} locks[LOCKS];

static const char *folder;
static uint64_t random_state;

static void begin(const char *of_run, uint64_t seed)
{
    folder = of_run;
    random_state = seed;
    faults_begin(replay_program(), of_run);
}

static int own(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS) {
        owner[fd] = (signed char)(replay_self() + 1);
    }
    return fd;
}

static void unlock_all(int rank, const struct stat *st)
{
    for (int i = 0; i < LOCKS; i++) {
        if (locks[i].rank == rank + 1 &&
            (st == NULL || (locks[i].device == st->st_dev && locks[i].file == st->st_ino))) {
            locks[i].rank = 0;
        }
    }
}

static void rank_died(int rank)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (owner[fd] == rank + 1) {
            __real_close(fd);
            owner[fd] = 0;
        }
    }
    unlock_all(rank, NULL);
}

/* Sockets are the adapter's alone, and one of them it keeps. */
static int leaks(int rank)
{
    int count = memory_leaks(rank);

    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        char path[64], file[128] = "";
        struct stat st;

        if (owner[fd] == rank + 1 && fstat(fd, &st) == 0 && !S_ISSOCK(st.st_mode)) {
            snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
            (void)!readlink(path, file, sizeof(file) - 1);
            replay_say("rank %d has left %s open", rank, file);
            count++;
        }
    }
    return count;
}

static void check(void)
{
    memory_check();
    faults_end(replay_program());
}

const struct replay_kernel wrap_kernel = {begin, rank_died,        leaks,
                                          check, faults_at_branch, faults_left};

static bool is_virtual(pid_t pid)
{
    return pid >= REPLAY_FIRST_PID && pid < REPLAY_FIRST_PID + PROGRAM_RANKS;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    uint64_t now = replay_now();

    (void)clock;
    *t = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
    return 0;
}

pid_t __wrap_getpid(void)
{
    return replay_self() < 0 ? __real_getpid() : REPLAY_FIRST_PID + replay_self();
}

int __wrap_kill(pid_t pid, int sig)
{
    if (!is_virtual(pid)) {
        return __real_kill(pid, sig);
    }
    if (replay_is_dead(pid - REPLAY_FIRST_PID)) {
        errno = ESRCH;
        return -1;
    }
    if (sig != 0) {
        replay_kill(pid - REPLAY_FIRST_PID);
    }
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    replay_sleep((uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec);
    return 0;
}

int __wrap_usleep(useconds_t us)
{
    replay_sleep((uint64_t)us * 1000);
    return 0;
}

int __wrap_sched_yield(void)
{
    replay_idle();
    return 0;
}

/* For a lock of the software HCA. */
int replay_yield(void);
int replay_yield(void)
{
    replay_wants_lock();
    return 0;
}

/* What is said of this process holds for each rank that lives. */
static const char *path_of(const char *path)
{
    int pid;

    if (sscanf(path, "/proc/%d/", &pid) != 1 || !is_virtual(pid)) {
        return path;
    }
    return replay_is_dead(pid - REPLAY_FIRST_PID) ? "/proc/0/none" : "/proc/self/stat";
}

/* What a kernel with adapters has: redirect.c of the rank's software HCA stands for it. */
static bool is_of_adapters(const char *path)
{
    return replay_self() >= 0 && (strncmp(path, "/dev/infiniband/", 16) == 0 ||
                                  strncmp(path, "/sys/class/infiniband/", 22) == 0);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (!is_of_adapters(path)) {
        return own(__real_open(path_of(path), flags, mode));
    }
    if (replay_strikes(FAULT_NO_FILE)) {
        errno = EMFILE;
        return -1;
    }
    return own(((__typeof__(&open))(uintptr_t)replay_function("open"))(path, flags, mode));
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    int pid;

    if (replay_self() >= 0 && !replay_program()->knows_ends &&
        sscanf(path, "/proc/%d/", &pid) == 1) {
        errno = EACCES;
        return NULL;
    }
    return __real_fopen(path_of(path), mode);
}

/* What the component says to people is a part of the run. */
int __wrap_fputs(const char *text, FILE *file)
{
    if (file != stderr || replay_self() < 0) {
        return __real_fputs(text, file);
    }
    if (!story_is_new(replay_self(), text)) {
        replay_fail("rank %d says twice: %s", replay_self(), text);
    }
    for (size_t n; *text != '\0'; text += n) {
        n = strcspn(text, "\n");
        replay_say("%.*s", (int)n, text);
        n += text[n] == '\n';
    }
    return 0;
}

long __wrap_sysconf(int name)
{
    return name == _SC_NPROCESSORS_ONLN && replay_self() >= 0 ? replay_program()->processors
                                                              : __real_sysconf(name);
}

int __wrap_openat(int at, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return own(__real_openat(at, path, flags, mode));
}

int __wrap_socket(int domain, int type, int protocol)
{
    return own(__real_socket(domain, type, protocol));
}

int __wrap_close(int fd)
{
    struct stat st;
    int (*of_rank)(int);

    if (replay_self() >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        unlock_all(replay_self(), &st);
    }
    if (fd >= 0 && fd < DESCRIPTORS) {
        owner[fd] = 0;
    }
    of_rank = replay_self() < 0 ? NULL : (__typeof__(&close))(uintptr_t)replay_function("close");
    return of_rank == NULL ? __real_close(fd) : of_rank(fd); /* NULL: its copy is unloaded */
}

/* closedir() closes a descriptor that openat() has given. */
DIR *__wrap_fdopendir(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS) {
        owner[fd] = 0;
    }
    return __real_fdopendir(fd);
}

static struct record *record_of(const struct stat *st)
{
    for (int i = 0; i < LOCKS; i++) {
        if (locks[i].rank != 0 && locks[i].device == st->st_dev && locks[i].file == st->st_ino) {
            return &locks[i];
        }
    }
    return NULL;
}

static int take_lock(const struct stat *st)
{
    for (int i = 0; i < LOCKS; i++) {
        if (locks[i].rank == 0) {
            locks[i] = (struct record){st->st_dev, st->st_ino, replay_self() + 1};
            return 0;
        }
    }
    errno = ENOLCK;
    return -1;
}

/* Record locks belong to a process, and here all ranks are one. */
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    void *argument;
    struct flock *lock;
    const struct record *held;
    struct stat st;

    va_start(args, command);
    argument = va_arg(args, void *);
    va_end(args);
    if ((command != F_GETLK && command != F_SETLK) || replay_self() < 0) {
        return __real_fcntl(fd, command, argument);
    }
    if (fstat(fd, &st) != 0) {
        return -1;
    }
    lock = argument;
    held = record_of(&st);
    if (command == F_SETLK) {
        return take_lock(&st);
    }
    lock->l_type = held == NULL || held->rank == replay_self() + 1 ? F_UNLCK : F_WRLCK;
    return 0;
}

ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < length; i++) {
        ((uint8_t *)buffer)[i] = (uint8_t)program_random(&random_state);
    }
    return (ssize_t)length;
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t length)
{
    return replay_strikes(FAULT_NO_ROOM) ? ENOSPC : __real_posix_fallocate(fd, offset, length);
}

/* What may be locked, where somebody asks: this machine's own limit is not the seed's. */
int __wrap_getrlimit(int resource, struct rlimit *limit)
{
    int rc = __real_getrlimit(resource, limit);

    if (rc == 0 && resource == RLIMIT_MEMLOCK && replay_self() >= 0) {
        limit->rlim_cur = replay_program()->locked;
    }
    return rc;
}

static int fixed_space(int rc, struct statvfs *fs)
{
    fs->f_frsize = fs->f_bsize = 4096;
    fs->f_blocks = fs->f_bavail = fs->f_bfree = (uint64_t)FREE_MIB << 8;
    return rc;
}

int __wrap_statvfs(const char *path, struct statvfs *fs)
{
    return fixed_space(__real_statvfs(path, fs), fs);
}

int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
    return fixed_space(__real_fstatvfs(fd, fs), fs);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
                                const struct iovec *there, unsigned long m, unsigned long flags)
{
    ssize_t bytes;

    replay_moved();
    if (!faults_may_touch(pid)) {
        return -1;
    }
    bytes = memory_copy(pid == getpid() ? -1 : replay_self(), here, n, there, m);
    faults_spoil(pid - REPLAY_FIRST_PID, here, n, bytes);
    return bytes;
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
                                 const struct iovec *there, unsigned long m, unsigned long flags)
{
    ssize_t bytes;

    replay_moved();
    if (!faults_may_touch(pid)) {
        return -1;
    }
    bytes = memory_copy(pid == getpid() ? -1 : pid - REPLAY_FIRST_PID, there, m, here, n);
    if (pid != REPLAY_FIRST_PID + replay_self()) {
        faults_spoil(replay_self(), there, m, bytes);
    }
    return bytes;
}

static size_t cut(size_t size)
{
    uint64_t drawn = program_random(&random_state);

    return drawn % 2 == 0 ? size : 1 + drawn / 2 % size;
}

/*
 * The product's own copies (build.mk names them so), which a kernel may refuse; the software HCA's stand for the
 * adapter. Others go on while it copies, and the caller may be killed there.
 */
static ssize_t copy(pid_t pid, const struct iovec *here, const struct iovec *there, bool is_read)
{
    size_t size = here->iov_len < there->iov_len ? here->iov_len : there->iov_len, done = 0;
    int peer = pid - REPLAY_FIRST_PID;

    if (replay_strikes(FAULT_NO_COPY)) {
        errno = EPERM;
        return -1;
    }
    while (done < size) {
        size_t left = size - done, part = cut(left);
        struct iovec own = {(char *)here->iov_base + done, part},
                     other = {(char *)there->iov_base + done, part};
        ssize_t n;

        if (!faults_may_touch(pid)) {
            return done > 0 ? (ssize_t)done : -1;
        }
        if (causes_has(peer, CAUSE_HOSTILE) && !memory_is_of(peer, other.iov_base, part)) {
            errno = EFAULT; /* what it names is not there */
            return done > 0 ? (ssize_t)done : -1;
        }
        n = is_read ? process_vm_readv(getpid(), &own, 1, &other, 1, 0)
                    : process_vm_writev(getpid(), &own, 1, &other, 1, 0);
        if (n <= 0) {
            return done > 0 ? (ssize_t)done : -1;
        }
        done += (size_t)n;
        if (done < size) {
            replay_turn_ends();
        }
    }
    return (ssize_t)done;
}

ssize_t replay_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
                        const struct iovec *there, unsigned long m, unsigned long flags)
{
    (void)n, (void)m, (void)flags;
    return copy(pid, here, there, true);
}

ssize_t replay_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
                         const struct iovec *there, unsigned long m, unsigned long flags)
{
    (void)n, (void)m, (void)flags;
    return copy(pid, here, there, false);
}

char *__wrap_getenv(const char *name)
{
    static char text[32];

    if (replay_self() < 0) {
        return __real_getenv(name);
    }
    if (strcmp(name, "SOFTHCA_DIR") == 0) {
        return (char *)(uintptr_t)folder;
    }
    if (strcmp(name, "OMPI_COMM_WORLD_RANK") == 0 || strcmp(name, "OMPI_COMM_WORLD_SIZE") == 0) {
        snprintf(text, sizeof(text), "%d",
                 strcmp(name, "OMPI_COMM_WORLD_RANK") == 0 ? replay_self() % replay_program()->ranks
                                                           : replay_program()->ranks);
        return text;
    }
    return NULL;
}

/* The timer thread of the software HCA: its adapter goes on when its process calls it, or a peer does. */
int replay_no_thread(void *thread, const void *attributes, void *(*run)(void *), void *argument)
{
    (void)thread, (void)attributes, (void)run, (void)argument;
    return EAGAIN;
}
