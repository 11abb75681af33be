#include "front/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fault/faultact.h"
#include "fault/faultspec.h"
#include "shm/life.h"

enum { BACKLOG = 16, PATIENCE_S = 2, LONGEST_MS = 1000 };

static int listener = -1, ends[2] = {-1, -1};
static char path_of_socket[PATH_MAX];
static const struct shm_conf *conf;
static pthread_t thread;
static bool has_thread;

static int make_name(const char *path, struct sockaddr_un *name)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(name->sun_path)) {
        fprintf(stderr, "softhca-run: %s: the name of a socket has at most %zu characters\n", path,
                sizeof(name->sun_path) - 1);
        return -ENAMETOOLONG;
    }
    snprintf(name->sun_path, sizeof(name->sun_path), "%s", path);
    return 0;
}

static int dial(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof(*name)) != 0) {
        int err = errno;

        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

/* A socket that nobody listens on was left by a runner that was killed with its guard. */
static void remove_stale(const struct sockaddr_un *name)
{
    struct stat st;
    int fd = dial(name);

    if (fd >= 0) {
        close(fd);
    } else if (errno == ECONNREFUSED && lstat(name->sun_path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        unlink(name->sun_path);
    }
}

int control_open(const char *path)
{
    struct sockaddr_un name;
    int err = make_name(path, &name);
    mode_t before;
    bool is_bound;

    if (err) {
        return err;
    }
    remove_stale(&name);
    before = umask(077);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    is_bound = listener >= 0 && bind(listener, (const struct sockaddr *)&name, sizeof(name)) == 0;
    err = is_bound && listen(listener, BACKLOG) == 0 ? 0 : -errno;
    umask(before);
    if (err) {
        fprintf(stderr, "softhca-run: --control %s: %s; name another\n", path, strerror(-err));
        if (is_bound) {
            unlink(path);
        }
        return err;
    }
    if (!realpath(path, path_of_socket)) {
        path_of_socket[0] = 0;
    }
    return 0;
}

void control_hang_up(void)
{
    if (listener >= 0) {
        close(listener);
    }
}

void control_remove(void)
{
    if (path_of_socket[0]) {
        unlink(path_of_socket);
    }
}

static void show(FILE *out)
{
    uint32_t high = atomic_load(&shm.head->procs.high);

    for (uint32_t i = 0; i < high; i++) {
        const struct shm_proc *p = &shm.procs[i];
        int32_t pid = atomic_load(&p->pid);

        if (pid > 0 && proc_is_alive(i)) {
            fprintf(out, "process %d rank %u host %u\n", pid, p->rank, p->host);
        }
    }
    for (uint32_t i = 0; i < shm.head->port_count; i++) {
        const struct shm_port *p = &shm.ports[i];

        fprintf(out, "port host %u softhca%u/%u %s\n", p->host, p->hca, p->num,
                atomic_load(&p->state) == IBV_PORT_ACTIVE ? "active" : "down");
    }
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        struct shm_fault *f = &shm.faults[i];

        if (atomic_load(&f->kind)) {
            uint64_t hits = atomic_load(&f->hits);

            fprintf(out, "fault %s hit %llu of %llu\n", f->text,
                    (unsigned long long)(hits < f->count ? hits : f->count),
                    (unsigned long long)atomic_load(&f->seen));
        }
    }
}

static void obey(const char *line, FILE *out)
{
    struct shm_fault f;
    char why[256];

    if (fault_parse(line, conf, &f, why, sizeof(why)) != 0) {
        fprintf(out, "error: fault '%.128s': %s\n", line, why);
    } else if (f.kind == FAULT_SHOW) {
        show(out);
    } else if (faultact_begin(&f) != 0) {
        fprintf(out, "error: fault '%s': more than %d at once; clear ends them\n", line,
                SHM_FAULTS);
    } else {
        faultact_run(); /* so that it has happened when it is answered */
        fprintf(out, "ok\n");
    }
    fprintf(out, "\n");
}

/* Whoever says nothing for two seconds is hung up on. */
static void serve(void)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    char line[2 * FAULT_TEXT];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    FILE *in;
    FILE *out;

    if (fd < 0) {
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    in = fdopen(fd, "r");
    out = fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 0), "w");
    while (in && out && fgets(line, sizeof(line), in)) {
        line[strcspn(line, "\n")] = 0;
        obey(line, out);
        if (fflush(out) != 0) {
            break;
        }
    }
    if (out) {
        fclose(out);
    }
    if (in) {
        fclose(in);
    } else {
        close(fd);
    }
}

static void *control_main(void *unused)
{
    for (;;) {
        uint64_t next = faultact_run(), now = shm_now();
        uint64_t ms = next <= now ? 0 : (next - now) / 1000000 + 1;
        struct pollfd fds[2] = {{ends[0], POLLIN, 0}, {listener, POLLIN, 0}};

        poll(fds, 2, ms > LONGEST_MS ? LONGEST_MS : (int)ms);
        if (fds[0].revents) {
            return NULL;
        }
        if (fds[1].revents) {
            serve();
        }
    }
}

int control_start(const struct shm_conf *of_run)
{
    sigset_t all, before;
    int err;

    conf = of_run;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -errno;
    }
    sigfillset(&all); /* the main thread forwards signals; a client that hangs up is no reason */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = -pthread_create(&thread, NULL, control_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    has_thread = err == 0;
    return err;
}

void control_stop(void)
{
    if (has_thread) {
        close(ends[1]);
        pthread_join(thread, NULL);
        close(ends[0]);
    }
    control_remove();
}

/* The lines of one answer. False when it was an error or did not come. */
static bool print_answer(FILE *in)
{
    char line[512];
    bool is_error = false;

    while (fgets(line, sizeof(line), in)) {
        if (line[0] == '\n') {
            return !is_error;
        }
        is_error |= strncmp(line, "error: ", 7) == 0;
        if (is_error) {
            fprintf(stderr, "softhca-run: %s", line + 7);
        } else if (strcmp(line, "ok\n") != 0) {
            fputs(line, stdout);
        }
    }
    fprintf(stderr, "softhca-run: the run ended before it answered\n");
    return false;
}

int control_tell(const char *path, char **faults)
{
    struct sockaddr_un name;
    int fd;
    FILE *in;
    int code;

    if (make_name(path, &name) != 0) {
        return 2;
    }
    fd = dial(&name);
    in = fd < 0 ? NULL : fdopen(fd, "r");
    if (!in) {
        fprintf(stderr, "softhca-run: --tell %s: %s; is softhca-run --control %s running?\n", path,
                strerror(errno), path);
        return 2;
    }
    code = 0;
    for (; *faults && code == 0; faults++) {
        size_t length = strlen(*faults);
        bool is_said = !strchr(*faults, '\n') && length < FAULT_TEXT &&
                       send(fd, *faults, length, MSG_NOSIGNAL) == (ssize_t)length &&
                       send(fd, "\n", 1, MSG_NOSIGNAL) == 1;

        if (!is_said) {
            fprintf(stderr, "softhca-run: fault '%.32s...' is longer than %d characters\n", *faults,
                    FAULT_TEXT - 1);
        }
        code = is_said && print_answer(in) ? 0 : 2;
    }
    fclose(in);
    return code;
}
