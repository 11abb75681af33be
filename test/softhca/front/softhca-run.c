/*
 * softhca-run: makes the shared file of a run in a private folder, starts the command on it, and
 * removes the folder afterwards, also when it is killed itself: a guard process waits for its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front/front.h"
#include "fault/faultspec.h"
#include "shm/life.h"

enum { EXIT_USAGE = 2, EXIT_REPORTS = 3, EXIT_NOT_STARTED = 126, EXIT_NOT_FOUND = 127 };

uint32_t proc_self = SHM_PROCS; /* its place is behind those of the run's processes */

static volatile sig_atomic_t child;
static struct place place;
static const struct profile *profile;

static void forward(int sig)
{
    if (child > 0) {
        kill((pid_t)child, sig);
    }
}

static int guard = -1;

/* Outlives the runner when that is killed: its pipe then ends, without a byte. */
static void start_guard(void)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    if (fork() == 0) {
        char byte;
        ssize_t got;

        setsid();
        prctl(PR_SET_NAME, "softhca-guard", 0, 0, 0);
        close(ends[1]);
        control_hang_up();
        for (int fd = 0; fd < 3; fd++) {
            close(fd);
        }
        while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) {
        }
        folder_remove();
        if (got == 0) {
            control_remove();
        }
        _exit(0);
    }
    close(ends[0]);
    guard = ends[1];
}

/* The socket that the runner has removed itself may by now be another run's. */
static void dismiss_guard(void)
{
    signal(SIGPIPE, SIG_IGN); /* it may have been killed */
    while (guard >= 0 && write(guard, "", 1) < 0 && errno == EINTR) {
    }
}

/* Whether one child may read another's memory, as processes of the run will: 0, or -1 after a message. */
static int check_copies(void)
{
    int word = 0, got, status = 1;
    pid_t target = fork(), reader;

    if (target == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        pause();
        _exit(0);
    }
    reader = fork();
    if (reader == 0) {
        struct iovec to = {&got, sizeof(got)}, from = {&word, sizeof(word)};

        for (int i = 0; i < 100; i++) { /* the target may not have called prctl yet */
            if (process_vm_readv(target, &to, 1, &from, 1, 0) == sizeof(got)) {
                _exit(0);
            }
            usleep(1000);
        }
        _exit(1);
    }
    waitpid(reader, &status, 0);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    if (status != 0) {
        front_refuse(0, "the system refuses process_vm_readv between processes: allow ptrace "
                        "(container: --cap-add SYS_PTRACE or a seccomp profile that has it and "
                        "process_vm_writev; host: kernel.yama.ptrace_scope below 2)");
    }
    return status ? -1 : 0;
}

static void full_before_run(void)
{
    folder_remove();
    control_stop();
}

static int make_run(struct options *o)
{
    if (folder_make(o->dir ? o->dir : "/dev/shm", o->gib) != 0) {
        return -1;
    }
    while (o->conf.seed == 0 && getrandom(&o->conf.seed, 4, 0) != 4) {
    }
    shm.head->conf = o->conf;
    shm.head->random = o->conf.seed;
    shm.head->moves = 1;
    shm.head->timed = o->conf.defer_us || o->conf.adversarial || o->conf.swap || o->conf.scatter;
    shm.procs[SHM_PROCS].start_time = life_start_time(getpid());
    atomic_store(&shm.procs[SHM_PROCS].pid, getpid());
    fabric_make_ports(&place);
    if (wire_make(profile, o, &place) != 0 || sysfs_make(profile != NULL) != 0) {
        folder_remove();
        return -1;
    }
    return 0;
}

static void banner(const struct options *o)
{
    const struct shm_conf *c = &o->conf;
    bool has_faults;

    if (o->quiet) {
        return;
    }
    fprintf(stderr,
            "softhca: software HCA: %u host%s, %u HCA%s of %u port%s, %s; no InfiniBand hardware\n",
            c->hosts, c->hosts > 1 ? "s" : "", c->hcas, c->hcas > 1 ? "s" : "", c->ports,
            c->ports > 1 ? "s" : "",
            c->link == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    has_faults = o->faults || o->control;
    if (profile) {
        fprintf(stderr,
                "softhca: wire: a model of %s over %s, time x %u: nothing here was measured on "
                "hardware\n",
                profile->help, place.fabric ? o->fabric : "one switch", o->scale);
    }
    if (c->defer_us || c->adversarial || has_faults) {
        fprintf(stderr, "softhca:%s%s%s seed %llu\n", c->defer_us ? " deferred," : "",
                c->adversarial ? " adversarial," : "", has_faults ? " faults," : "",
                (unsigned long long)c->seed);
    }
}

/* Beside the program, as in a folder that was moved; else where it was installed. */
static void library_path(char *path, size_t size)
{
    const char *named = getenv("SOFTHCA_LIBRARY");
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    path[n > 0 ? n : 0] = 0;
    slash = strrchr(path, '/');
    if (named) {
        snprintf(path, size, "%s", named);
    } else if (slash) {
        snprintf(slash, size - (size_t)(slash - path), "/../lib/libsofthca.so");
        if (access(path, R_OK) != 0 && access(SOFTHCA_LIBDIR "/libsofthca.so", R_OK) == 0) {
            snprintf(path, size, "%s", SOFTHCA_LIBDIR "/libsofthca.so");
        }
    }
}

/* A sanitizer's runtime, when this build has one, must come before all other libraries. */
static int find_sanitizer(struct dl_phdr_info *info, size_t size, void *path)
{
    if (!strstr(info->dlpi_name, "/libasan.so") && !strstr(info->dlpi_name, "/libtsan.so")) {
        return 0;
    }
    snprintf(path, PATH_MAX, "%s:", info->dlpi_name);
    return 1;
}

static int set_environment(void)
{
    char library[PATH_MAX], sanitizer[PATH_MAX] = "", preload[3 * PATH_MAX];
    const char *before;

    library_path(library, sizeof(library));
    if (access(library, R_OK) != 0) {
        return front_refuse(-1, "%s: %s; install softhca, or name the library in SOFTHCA_LIBRARY",
                            library, strerror(errno));
    }
    before = getenv("LD_PRELOAD");
    dl_iterate_phdr(find_sanitizer, sanitizer);
    snprintf(preload, sizeof(preload), "%s%s%s%s", sanitizer, library, before && *before ? ":" : "",
             before ? before : "");
    setenv("LD_PRELOAD", preload, 1);
    setenv("SOFTHCA_DIR", shm.head->dir, 1);
    setenv("SYSFS_PATH", shm.head->dir, 1);
    return 0;
}

static int wait_for_child(void)
{
    int status;

    while (waitpid((pid_t)child, &status, 0) < 0) {
        if (errno != EINTR) {
            return EXIT_NOT_STARTED;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const struct options *o, char **argv)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    pid_t parent = getpid();

    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) {
            _exit(EXIT_NOT_STARTED);
        }
        if (set_environment() == 0) {
            int err;

            execvp(argv[0], argv);
            err = errno;
            fprintf(stderr, "softhca-run: cannot start '%s': %s\n", argv[0], strerror(err));
            _exit(err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_STARTED);
        }
        _exit(EXIT_NOT_STARTED);
    }
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        signal(signals[i], forward);
    }
    if (o->control || o->faults) {
        control_start();
    }
    return child < 0 ? EXIT_NOT_STARTED : wait_for_child();
}

/* Else a file that is opened later becomes standard error, and messages are written into it. */
static void fill_standard(void)
{
    int fd;

    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO) {
    }
    close(fd);
}

int main(int argc, char **argv)
{
    struct options o;
    int command, err, code;
    uint32_t reports;

    fill_standard();
    err = options_parse(argc, argv, &o, &command);
    if (err) {
        return err > 0 ? 0 : EXIT_USAGE;
    }
    if (o.tell) {
        return control_tell(o.tell, argv + command);
    }
    if (wire_choose(&o, &profile) != 0 || wire_report_check(&o) != 0 ||
        place_load(&o, &place) != 0 || options_faults(&o) != 0) {
        return EXIT_USAGE;
    }
    shm_when_full = full_before_run;
    if (check_copies() != 0 || (o.control && control_open(o.control) != 0) || make_run(&o) != 0) {
        control_stop();
        return EXIT_USAGE;
    }
    start_guard();
    shm_when_full = NULL; /* from here on the guard cleans up */
    banner(&o);
    control_begin(&o);
    code = run(&o, argv + command);
    dismiss_guard();
    control_stop();
    control_report();
    if (o.conf.stalls) {
        uint64_t polls = atomic_load(&shm.head->stall);
        fprintf(stderr, "softhca: longest stall: %llu.%03llu ms\n",
                (unsigned long long)polls / 1000, (unsigned long long)polls % 1000);
    }
    reports = atomic_load(&shm.head->reports);
    if (reports) {
        fprintf(stderr, "softhca: %u wrong uses of verbs were found\n", reports);
    }
    if (wire_report(&o, profile, &place) != 0 && code == 0) {
        code = EXIT_USAGE;
    }
    code = atomic_load(&shm.head->refused) ? EXIT_USAGE : code;
    folder_remove();
    return code == 0 && reports ? EXIT_REPORTS : code;
}
