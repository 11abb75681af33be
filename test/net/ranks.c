#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"

void ranks_fail(struct ranks *ranks, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "rank %d: ", ranks->self);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

static int give_card(void *context, uint32_t peer, void *card, size_t size)
{
    struct ranks *ranks = context;
    uint32_t have;

    if (peer >= (uint32_t)ranks->count) {
        return -ENOENT;
    }
    have = ranks->shared->card_size[peer];
    memcpy(card, ranks->shared->card[peer], have < size ? have : size);
    return (int)have;
}

static void say(void *context, const char *line)
{
    fprintf(stderr, "rank %d: warning: %s\n", ((struct ranks *)context)->self, line);
}

static void wait_for_all(struct ranks *ranks, int number)
{
    uint32_t *arrived = &ranks->shared->arrived[number];

    __atomic_fetch_add(arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < (uint32_t)ranks->count) {
        struct ibshift_net_event event;
        if (ranks->net != NULL && ibshift_net_poll(ranks->net, &event, 1) != 0) {
            ranks_fail(ranks, "an event in a barrier: cookie %lu, status %d",
                       (unsigned long)event.cookie, event.status);
        }
        usleep(50);
    }
}

void ranks_barrier(struct ranks *ranks, int number)
{
    wait_for_all(ranks, number);
}

static int run_rank(struct ranks *ranks, int (*body)(struct ranks *))
{
    struct ibshift_verbs_options open = {.max_ports = ranks->max_ports,
                                         .gid_index = -1,
                                         .survives_fork = true,
                                         .ports = ranks->ports};
    char error[256] = "";
    size_t size;
    int rc = ibshift_verbs_open(&open, &ranks->verbs, error, sizeof(error));

    if (rc != 0) {
        if (ranks->self == 0) {
            puts(error);
        }
        return rc == -ENODEV ? 77 : 1;
    }
    const void *card = ibshift_verbs_card(ranks->verbs, &size);
    memcpy(ranks->shared->card[ranks->self], card, size);
    ranks->shared->card_size[ranks->self] = (uint32_t)size;
    wait_for_all(ranks, 62);
    ranks->options.self = (uint32_t)ranks->self;
    ranks->options.peers = (uint32_t)ranks->count;
    ranks->options.card = give_card;
    ranks->options.say = say;
    ranks->options.context = ranks;
    rc = ibshift_net_verbs_create(ranks->verbs, &ranks->options, &ranks->net, error, sizeof(error));
    if (rc != 0) {
        ranks_fail(ranks, "no net: %s", error);
    }
    rc = body(ranks);
    ibshift_net_destroy(ranks->net);
    ibshift_verbs_close(ranks->verbs);
    return rc;
}

int ranks_run(struct ranks *ranks, int (*body)(struct ranks *), uint64_t may_die)
{
    pid_t pids[RANKS_MAX];
    int verdict = 0;

    ranks->shared = mmap(NULL, sizeof(*ranks->shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ranks->shared == MAP_FAILED) {
        return 1;
    }
    for (int i = 0; i < ranks->count; i++) {
        fflush(NULL);
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* or it would poll for ever for who is gone */
            ranks->self = i;
            int rc = run_rank(ranks, body);
            fflush(NULL);
            _exit(rc);
        }
    }
    for (int i = 0; i < ranks->count; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        int rc = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (WIFSIGNALED(status) && i < 64 && (may_die >> i & 1)) {
            rc = 0;
        } else if (WIFSIGNALED(status)) {
            fprintf(stderr, "rank %d: ended by signal %d\n", i, WTERMSIG(status));
        }
        verdict = rc != 0 && verdict != 1 ? rc : verdict;
    }
    munmap(ranks->shared, sizeof(*ranks->shared));
    return verdict;
}

static void take_option(const struct ranks_option *o, char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 0);

    if (o->size == 0) {
        *(char **)o->where = text;
    } else if (*text == '\0' || *end != '\0' || value < o->least || value > o->most) {
        fprintf(stderr, "-%c '%s' is no number from %lu to %lu\n", o->letter, text, o->least,
                o->most);
        exit(2);
    } else {
        memcpy(o->where, &value, o->size); /* little endian, as net.h */
    }
}

void ranks_options(int argc, char **argv, const struct ranks_option *options)
{
    char letters[64] = "";
    int letter;

    for (const struct ranks_option *o = options; o->letter != 0; o++) {
        sprintf(letters + strlen(letters), "%c:", o->letter);
    }
    while ((letter = getopt(argc, argv, letters)) != -1) {
        const struct ranks_option *o = options;

        while (o->letter != 0 && o->letter != letter) {
            o++;
        }
        if (o->letter == 0) {
            exit(2);
        }
        take_option(o, optarg);
    }
}

struct ibshift_net_verbs_stats ranks_stats(const struct ranks *ranks)
{
    struct ibshift_net_verbs_stats stats;

    ibshift_net_verbs_stats(ranks->net, &stats);
    return stats;
}

uint64_t ranks_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static uint8_t byte_at(size_t i, uint64_t seed)
{
    return (uint8_t)((i * 0x9e3779b97f4a7c15u + seed) >> 56);
}

void ranks_fill(uint8_t *buffer, size_t length, uint64_t seed)
{
    for (size_t i = 0; i < length; i++) {
        buffer[i] = byte_at(i, seed);
    }
}

long ranks_differs(const uint8_t *buffer, size_t length, uint64_t seed)
{
    for (size_t i = 0; i < length; i++) {
        if (buffer[i] != byte_at(i, seed)) {
            return (long)i;
        }
    }
    return -1;
}
