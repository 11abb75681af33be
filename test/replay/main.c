/*
 * replay: runs the production code of several ranks under seeds, each in a process of its own.
 *
 * A process that dies leaves its folder; the next one of this program removes it (front.h).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "causes.h"
#include "front/front.h"
#include "memory.h"
#include "program.h"
#include "story.h"
#include "scheduler.h"

uint32_t proc_self = SHM_PROCS; /* behind those of the ranks */

enum { LONGEST = 300 }; /* s of a run: where it only computes nobody counts its branches */
enum { ENOUGH = 100 };  /* seeds, for each count to be of something */

static void *copies[PROGRAM_RANKS];
static char of_copies[PATH_MAX];
static char base[64];

/* Another file each time: the loader takes the same one for what it has already. All of them, whatever the program
   needs: where memory lies is a part of the run. */
static void load_copies(void)
{
    char path[PATH_MAX + 16];
    void (*prepare)(void);

    for (int i = 0; i < PROGRAM_RANKS; i++) {
        snprintf(path, sizeof(path), "%s.rank%d.so", of_copies, i);
        copies[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (copies[i] == NULL) {
            fprintf(stderr, "replay: %s\n", dlerror());
            exit(2);
        }
        prepare = (void (*)(void))(uintptr_t)dlsym(copies[i], "replay_prepare");
        if (i == 0 && prepare != NULL) {
            prepare();
        }
    }
}

/* The file of the adapters and its folder, and what is to happen to them, as softhca-run does it. */
static void make_adapters(const struct program *program)
{
    static struct options options;
    char text[sizeof(program->adapter)], *words[64] = {"softhca-run"}, *rest, *word;
    struct place place = {0};
    int count = 1, command;

    snprintf(text, sizeof(text), "%s", program->adapter);
    for (word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    for (int i = 0; i < program->acts; i++) {
        if (program->act[i].fault == FAULT_OF_ADAPTER && !program->act[i].is_dropped) {
            words[count++] = "--fault";
            words[count++] = (char *)(uintptr_t)program->act[i].text;
        }
    }
    words[count++] = "--";
    words[count++] = "true";
    if (options_parse(count, words, &options, &command) != 0 || options_faults(&options) != 0 ||
        folder_make(base, options.gib) != 0) {
        exit(2);
    }
    shm.head->conf = options.conf;
    shm.head->random = options.conf.seed;
    shm.head->moves = 1;
    shm.head->timed = options.conf.defer_us || options.conf.adversarial || options.conf.swap ||
                      options.conf.scatter;
    atomic_store(&shm.procs[SHM_PROCS].pid, getpid());
    fabric_make_ports(&place);
    if (sysfs_make(false) != 0) {
        exit(2);
    }
    control_begin(&options);
}

static void crashed(int sig, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
    const void *code = (const void *)(uintptr_t)at->uc_mcontext.gregs[REG_RIP];
    int self = replay_self();

    (void)info;
    memory_escape();
    if (self >= 0 && causes_has(self, CAUSE_HOSTILE)) {
        replay_kill(self); /* of its own garbage */
    }
    replay_fail("signal %d (%s) in rank %d at %#zx of rank.so", sig, strsignal(sig), self,
                self < 0 ? 0 : replay_place(self, code));
}

static void watch(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    static char stack[65536];
    struct sigaction action = {.sa_sigaction = crashed,
                               .sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO};
    stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};

    sigaltstack(&other, NULL);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        sigaction(signals[i], &action, NULL);
    }
}

static void count_faults(const struct program *program)
{
    static const enum story_count kinds[] = {[FAULT_LOSE] = COUNT_LOST,
                                             [FAULT_RNR] = COUNT_NOT_READY,
                                             [FAULT_SLOW] = COUNT_SLOW,
                                             [FAULT_REFUSE] = COUNT_REFUSED,
                                             [FAULT_LIMIT] = COUNT_REFUSED};

    story_count(COUNT_SEEDS, 1);
    for (int i = 0; i < SHM_FAULTS; i++) {
        uint32_t kind = atomic_load(&shm.faults[i].kind);

        if (kind >= FAULT_LOSE && kind <= FAULT_LIMIT) {
            story_count(kinds[kind], atomic_load(&shm.faults[i].hits));
        }
    }
    for (int i = 0; i < program->acts; i++) {
        story_count(COUNT_PORTS, strncmp(program->act[i].text, "down", 4) == 0 ||
                                     strncmp(program->act[i].text, "event", 5) == 0);
    }
}

/* Nobody was disturbed: each message that an executor has posted went over a net, once, and came; those alone by which
   the calls agree on grants that stand it does not count. */
static void compare_counts(const struct program *program)
{
    struct replay_card all = {.size = 0};

    for (int i = 0; i < program->ranks; i++) {
        const struct replay_card *card = replay_card(i);

        all.posted += card->posted;
        all.received += card->received;
        all.carried += card->carried;
        all.bytes_posted += card->bytes_posted;
        all.bytes_carried += card->bytes_carried;
    }
    if (all.posted != all.received ||
        (!program->has_multicast &&
         (all.posted > all.carried || all.bytes_posted > all.bytes_carried ||
          (all.posted == all.carried) != (all.bytes_posted == all.bytes_carried)))) {
        replay_fail("%llu messages posted, %llu received, %llu carried; %llu and %llu bytes",
                    (unsigned long long)all.posted, (unsigned long long)all.received,
                    (unsigned long long)all.carried, (unsigned long long)all.bytes_posted,
                    (unsigned long long)all.bytes_carried);
    }
}

/* In a process of its own: 0, or another exit code. */
static int run(const struct program *program, bool is_said)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        replay_is_quiet = !is_said;
        (void)setrlimit(RLIMIT_CPU, &(struct rlimit){LONGEST, LONGEST});
        make_adapters(program);
        watch();
        if (chdir(shm.head->dir) != 0) {
            _exit(2);
        }
        replay_run(program, copies, &wrap_kernel, shm.head->dir);
        count_faults(program);
        if (!causes_has_any()) {
            compare_counts(program);
        }
        if (atomic_load(&shm.head->reports) != 0) {
            printf("seed %llu: wrong uses of verbs, as the software HCA says\n",
                   (unsigned long long)program->seed);
            fflush(stdout);
            _exit(1);
        }
        if (is_said) {
            printf("seed %llu: right, %016llx\n", (unsigned long long)program->seed,
                   (unsigned long long)story_hash());
        }
        fflush(stdout);
        folder_remove();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child) {
        return 2;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Addresses are part of the seed; and copies of a library have more thread-local memory than the loader leaves room for. */
static void begin_again(char **argv)
{
    if ((personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0) {
        personality(ADDR_NO_RANDOMIZE);
        setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=8192", 1);
        execv("/proc/self/exe", argv);
    }
}

/* Whether the program still fails without `count` items from `first` on; then they stay out. */
static bool fails_without(struct program *program, int first, int count)
{
    struct program before = *program;
    bool is_less = false;

    for (int i = first; i < first + count && i < program->items; i++) {
        is_less |= !program->item[i].is_dropped;
        program->item[i].is_dropped = true;
    }
    if (is_less && run(program, false) != 0) {
        return true;
    }
    *program = before;
    return false;
}

/* Leaves out what the failure does not need, first much, then little: the same seed, fewer faults and calls. */
static void shrink(struct program *program)
{
    for (int i = program->acts - 1; i >= 0; i--) {
        program->act[i].is_dropped = true;
        program->act[i].is_dropped = run(program, false) != 0;
    }
    for (int count = program->items; count > 0; count /= 2) {
        for (int i = program->items / count * count; i >= 0; i -= count) {
            (void)fails_without(program, i, count);
        }
    }
    program_print(program);
    (void)run(program, true);
}

static void write_taken(const char *path)
{
    FILE *file = fopen(path, "wb");
    char counts[PATH_MAX];

    snprintf(counts, sizeof(counts), "%s.csv", path);
    if (file == NULL || fwrite(replay_taken, 1, REPLAY_TAKEN, file) != REPLAY_TAKEN ||
        fclose(file) != 0 || story_write_counts(counts) != 0) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        exit(2);
    }
}

static uint64_t run_all(uint64_t first, uint64_t last, bool until_failure)
{
    uint64_t failed = 0;

    for (uint64_t seed = first; seed <= last && !(until_failure && failed > 0); seed++) {
        struct program program;
        int rc;

        program_make(&program, seed);
        rc = run(&program, false);
        failed += rc != 0;
        if (rc > 1) {
            printf("seed %llu: ends with %d\n", (unsigned long long)seed, rc);
        }
    }
    if (last - first + 1 >= ENOUGH && failed == 0 && story_missing() != NULL) {
        printf("seed %llu: none of all seeds has had any %s\n", (unsigned long long)last,
               story_missing());
        failed++;
    }
    printf("%llu seeds, %llu failed\n", (unsigned long long)(last - first + 1),
           (unsigned long long)failed);
    return failed;
}

static int usage(void)
{
    fprintf(stderr, "replay SEED                        once, with all that happens\n"
                    "replay --shrink SEED               the smallest program that still fails\n"
                    "replay [--taken FILE] FIRST LAST   all of these seeds; the branches taken\n"
                    "replay --until-failure FIRST LAST  up to the first that fails\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *taken = NULL;
    struct program program;
    bool shrinks = false, until_failure = false;
    void *taken_of_all;
    char path[PATH_MAX];
    ssize_t length;
    int rc;

    begin_again(argv);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 26); /* memory that was used before needs no new pages */
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 28);
    if (argc > 2 && strcmp(argv[1], "--taken") == 0) {
        taken = argv[2];
        argc -= 2;
        argv += 2;
    } else if (argc > 1 && strcmp(argv[1], "--shrink") == 0) {
        shrinks = true;
        argc--;
        argv++;
    } else if (argc > 1 && strcmp(argv[1], "--until-failure") == 0) {
        until_failure = true;
        argc--;
        argv++;
    }
    length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (argc < 2 || argc > 3 || length < 0) {
        return usage();
    }
    path[length] = '\0';
    snprintf(base, sizeof(base), "/dev/shm/replay-%d", (int)getpid());
    mkdir(base, 0700);
    /* Always: where memory lies is a part of the run. */
    taken_of_all =
        mmap(NULL, REPLAY_TAKEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    replay_taken = taken != NULL ? taken_of_all : NULL;
    story_share();
    snprintf(of_copies, sizeof(of_copies), "%s", path);
    load_copies();
    program_make(&program, strtoull(argv[1], NULL, 0));
    if (shrinks) {
        shrink(&program);
        rc = 0;
    } else if (argc == 2) {
        program_print(&program);
        rc = run(&program, true);
    } else {
        rc = run_all(program.seed, strtoull(argv[2], NULL, 0), until_failure) != 0;
    }
    if (taken != NULL) {
        write_taken(taken);
    }
    snprintf(path, sizeof(path), "rm -rf %s", base);
    return system(path) != 0 ? 2 : rc;
}
