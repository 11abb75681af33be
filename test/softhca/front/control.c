/* Faults by the clock and from the control socket, and the client that tells them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fault/faultspec.h"
#include "front/front.h"
#include "shm/chan.h"
#include "shm/life.h"

enum { BACKLOG = 16, PATIENCE_S = 2, LONGEST_MS = 1000 };

static int listener = -1, ends[2] = {-1, -1};
static char path_of_socket[PATH_MAX];
static pthread_t thread;
static bool has_thread;

#define RETRY_NS 10000000ull /* a process to kill may still have to come */

struct action {
    struct shm_fault f;
    uint64_t when; /* 0 = free */
};

static struct action actions[SHM_FAULTS];
static bool is_quiet;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;

    if (is_quiet) {
        return;
    }
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

static bool matches(uint32_t wanted, uint32_t value)
{
    return wanted == SHM_NONE || wanted == value;
}

static int kill_processes(const struct shm_fault *f)
{
    uint32_t high = atomic_load(&shm.head->procs.high);
    int killed = 0;

    for (uint32_t i = 0; i < high; i++) {
        const struct shm_proc *p = &shm.procs[i];
        int32_t pid = atomic_load(&p->pid);

        if (pid > 0 && proc_is_alive(i) && matches(f->rank, p->rank) && matches(f->host, p->host) &&
            kill(pid, SIGKILL) == 0) {
            say("softhca: fault %s: killed process %d (rank %u, host %u)\n", f->text, pid, p->rank,
                p->host);
            killed++;
        }
    }
    return killed;
}

/* To every open context of the port's HCA. */
static void raise_event(const struct shm_port *port, uint32_t type)
{
    uint32_t high = atomic_load(&shm.head->chans.high);

    for (uint32_t i = 0; i < high; i++) {
        const struct shm_chan *c = &shm.chans[i];

        if (atomic_load(&c->used) && c->is_async && c->host == port->host && c->hca == port->hca) {
            chan_signal_async(i, type, 0, port->num);
        }
    }
}

static void set_port(struct shm_port *port, uint32_t state)
{
    if (atomic_exchange(&port->state, state) != state) {
        raise_event(port, state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    }
}

static void change_ports(const struct shm_fault *f)
{
    for (uint32_t i = 0; i < shm.head->port_count; i++) {
        struct shm_port *port = &shm.ports[i];

        if (!matches(f->host, port->host) || !matches(f->hca, port->hca) ||
            !matches(f->port, port->num)) {
            continue;
        }
        if (f->kind == FAULT_EVENT) {
            raise_event(port, f->event);
        } else {
            set_port(port, f->kind == FAULT_DOWN ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
        }
    }
}

static void clear_all(void)
{
    const struct shm_fault up = {
        .kind = FAULT_UP, .host = SHM_NONE, .hca = SHM_NONE, .port = SHM_NONE};

    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        atomic_store(&shm.faults[i].kind, FAULT_NONE);
        actions[i].when = 0;
    }
    atomic_store(&shm.head->faults, 0);
    change_ports(&up);
}

/* A rule's place is used again only after all others, so that who still looks at it is done. */
static int add_rule(const struct shm_fault *f)
{
    static uint32_t last;

    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        uint32_t at = (last + i) % SHM_FAULTS;
        struct shm_fault *rule = &shm.faults[at];
        struct shm_fault next;

        if (atomic_load(&rule->kind) && rule->until > shm_now()) {
            continue;
        }
        next = *f;
        next.kind = FAULT_NONE;
        next.from = shm_now() + f->in_ns;
        next.until = f->for_ns ? next.from + f->for_ns : TIME_NEVER;
        atomic_store(&rule->kind, FAULT_NONE);
        *rule = next;
        atomic_store_explicit(&rule->kind, f->kind, memory_order_release);
        if (atomic_load(&shm.head->faults) <= at) {
            atomic_store(&shm.head->faults, at + 1);
        }
        last = at + 1;
        return 0;
    }
    return -ENOSPC;
}

static int schedule(const struct shm_fault *f, uint64_t delay)
{
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        if (actions[i].when == 0) {
            actions[i].f = *f;
            actions[i].when = shm_now() + delay;
            return 0;
        }
    }
    return -ENOSPC;
}

/* Now, or when its time has come. 0 or -ENOSPC. */
static int begin(const struct shm_fault *f)
{
    return fault_is_rule(f) ? add_rule(f) : schedule(f, f->in_ns);
}

static void act(struct action *a)
{
    struct shm_fault f = a->f;

    a->when = 0;
    switch (f.kind) {
    case FAULT_KILL:
        if (!kill_processes(&f)) {
            a->when = shm_now() + RETRY_NS;
        }
        return;
    case FAULT_CLEAR:
        clear_all();
        break;
    default:
        change_ports(&f);
        if (f.kind == FAULT_DOWN && f.for_ns) {
            uint64_t for_ns = f.for_ns;

            f.kind = FAULT_UP;
            schedule(&f, for_ns); /* into the place that has just become free */
            f.kind = FAULT_DOWN;
        }
    }
    say("softhca: fault %s\n", f.text);
}

uint64_t control_act(void)
{
    uint64_t next = TIME_NEVER, now = shm_now();

    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        if (actions[i].when && actions[i].when <= now) {
            act(&actions[i]);
        }
    }
    for (uint32_t i = 0; i < SHM_FAULTS; i++) { /* after all: an act may schedule another */
        next = actions[i].when && actions[i].when < next ? actions[i].when : next;
    }
    return next;
}

/* How often each rule hit. */
static void print_rules(FILE *out, const char *format)
{
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        const struct shm_fault *f = &shm.faults[i];
        uint64_t hits = atomic_load(&f->hits);

        if (atomic_load(&f->kind)) {
            fprintf(out, format, f->text, (unsigned long long)(hits < f->count ? hits : f->count),
                    (unsigned long long)atomic_load(&f->seen));
        }
    }
}

void control_begin(const struct options *o)
{
    is_quiet = o->quiet;
    for (uint32_t i = 0; i < o->faults; i++) {
        begin(&o->fault[i]);
    }
    control_act();
}

void control_report(void)
{
    if (!is_quiet) {
        print_rules(stderr, "softhca: fault %s: hit %llu of %llu\n");
    }
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        if (actions[i].when) {
            say("softhca: fault %s: did not happen\n", actions[i].f.text);
        }
    }
}

static int make_name(const char *path, struct sockaddr_un *name)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(name->sun_path)) {
        return front_refuse(-ENAMETOOLONG, "%s: the name of a socket has at most %zu characters",
                            path, sizeof(name->sun_path) - 1);
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
        if (is_bound) {
            unlink(path);
        }
        return front_refuse(err, "--control %s: %s; name another", path, strerror(-err));
    }
    if (!realpath(path, path_of_socket)) {
        path_of_socket[0] = 0;
    }
    return 0;
}

void control_hang_up(void)
{
    close(listener);
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
    print_rules(out, "fault %s hit %llu of %llu\n");
}

static void obey(const char *line, FILE *out)
{
    struct shm_fault f;
    char why[256];

    if (fault_parse(line, &shm.head->conf, &f, why, sizeof(why)) != 0) {
        fprintf(out, "error: fault '%.128s': %s\n", line, why);
    } else if (f.kind == FAULT_SHOW) {
        show(out);
    } else if (begin(&f) != 0) {
        fprintf(out, "error: fault '%s': more than %d at once; clear ends them\n", line,
                SHM_FAULTS);
    } else {
        control_act(); /* so that it has happened when it is answered */
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
        uint64_t next = control_act(), now = shm_now();
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

int control_start(void)
{
    sigset_t all, before;
    int err;

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
    int fd, code = 0;
    FILE *in;

    if (make_name(path, &name) != 0) {
        return 2;
    }
    fd = dial(&name);
    in = fd < 0 ? NULL : fdopen(fd, "r");
    if (!in) {
        return front_refuse(2, "--tell %s: %s; is softhca-run --control %s running?", path,
                            strerror(errno), path);
    }
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
