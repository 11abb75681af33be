#include "lib/processes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { PATIENCE = 30 * 1000 * 10 /* turns of 100 us */ };

struct meeting {
    _Atomic uint32_t arrived[2], left[2];
    char bytes[2][MEET_BYTES];
};

static int wait_for(_Atomic uint32_t *count, uint32_t number)
{
    for (int turn = 0; turn < PATIENCE; turn++) {
        if (atomic_load(count) >= number) {
            return 0;
        }
        usleep(100);
    }
    return -1;
}

int processes_allgather(void *context, const void *mine, void *all, size_t size)
{
    struct process *process = context;
    struct meeting *meeting = process->meeting;
    uint32_t half = process->number % 2, round = process->number / 2;

    if (size * process->ranks > MEET_BYTES ||
        wait_for(&meeting->left[half], round * process->ranks) != 0) {
        return -1;
    }
    process->number++;
    memcpy(meeting->bytes[half] + process->rank * size, mine, size);
    atomic_fetch_add(&meeting->arrived[half], 1);
    if (wait_for(&meeting->arrived[half], (round + 1) * process->ranks) != 0) {
        return -1;
    }
    memcpy(all, meeting->bytes[half], size * process->ranks);
    atomic_fetch_add(&meeting->left[half], 1);
    return 0;
}

int processes_fail(const struct process *process, const char *what, int rc)
{
    fprintf(stderr, "rank %u of %u: %s: %d (%s)\n", process->rank, process->ranks, what, rc,
            rc < 0 ? strerror(-rc) : "");
    return 1;
}

static int become(struct process *process, bool opens, int (*work)(struct process *process))
{
    const struct ibs_setup setup = {.api = IBS_API,
                                    .rank = process->rank,
                                    .ranks = process->ranks,
                                    .allgather = processes_allgather,
                                    .context = process};
    char error[512] = "";
    int rc = opens ? ibs_open(&setup, &process->job, error, sizeof(error)) : 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rc != 0) {
        return processes_fail(process, error, rc);
    }
    return work(process);
}

int processes_run(uint32_t ranks, bool opens, unsigned dead, int (*work)(struct process *process))
{
    struct meeting *meeting =
        mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[RANKS_MAX];
    int bad = 0, status;

    if (meeting == MAP_FAILED || ranks > RANKS_MAX) {
        return 1;
    }
    fflush(NULL);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            struct process process = {.meeting = meeting, .rank = rank, .ranks = ranks};

            exit(become(&process, opens, work));
        }
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (waitpid(pids[rank], &status, 0) != pids[rank]) {
            return 1;
        }
        if ((dead >> rank & 1) != 0 ? !WIFSIGNALED(status) : status != 0) {
            fprintf(stderr, "rank %u of %u ended with status %#x\n", rank, ranks, (unsigned)status);
            bad = 1;
        }
    }
    munmap(meeting, sizeof(*meeting));
    return bad;
}
