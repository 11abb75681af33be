/* A folder of shared memory that is small, as in a container: all processes of the host are served, and others too. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/node/node.h"
#include "unit.h"

enum { PROCESSES = 15, MEMORY = 4 << 20, ROOM = 64 << 20, CANNOT = 77 };

static char folder[] = "/tmp/test-node-room-XXXXXX";

static int no_card(void *context, uint32_t peer, struct ibshift_node_card *card)
{
    (void)context;
    (void)peer;
    (void)card;
    return -ENOENT;
}

/* One process of a job: tells its ring, 0 if it got none, and keeps its segment until the end. */
static void take_part(uint32_t job, uint32_t place, int told)
{
    struct ibshift_node_options options = {.folder = folder,
                                           .processes = PROCESSES,
                                           .place = place,
                                           .job = job,
                                           .memory = MEMORY,
                                           .card = no_card};
    struct ibshift_net *net;
    uint32_t ring = 0;
    char why[200];

    if (ibshift_net_node_create(&options, &net, why, sizeof(why)) == 0) {
        ring = ibshift_net_node_card(net)->ring;
    } else {
        fprintf(stderr, "process %u: %s\n", place, why);
    }
    if (write(told, &ring, sizeof(ring)) != (ssize_t)sizeof(ring)) {
        _exit(1);
    }
    pause();
    _exit(0);
}

static uint64_t free_bytes(void)
{
    struct statvfs fs;

    return statvfs(folder, &fs) != 0 ? 0 : (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* All start at once. The ring of all of them, 0 if they differ; they go on. */
static uint32_t start_job(uint32_t job, pid_t *pids)
{
    uint32_t rings[PROCESSES] = {0};
    int ends[2];

    if (pipe(ends) != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] < 0) {
            return 0;
        }
        if (pids[i] == 0) {
            take_part(job, i, ends[1]);
        }
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        if (read(ends[0], &rings[i], sizeof(rings[i])) != (ssize_t)sizeof(rings[i])) {
            return 0;
        }
    }
    close(ends[0]);
    close(ends[1]);
    for (uint32_t i = 1; i < PROCESSES; i++) {
        if (rings[i] != rings[0]) {
            fprintf(stderr, "job %u: rings of %u and %u bytes\n", job, rings[0], rings[i]);
            return 0;
        }
    }
    return rings[0];
}

/* Jobs that come one after another, in a folder of which so much has been taken by somebody. */
static int serve(uint32_t jobs, off_t taken, const uint32_t *wanted)
{
    pid_t pids[2 * PROCESSES] = {0};
    char path[64];
    int file, rc = 0;

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", folder, "tmpfs", 0, "size=64m") != 0) {
        return CANNOT;
    }
    snprintf(path, sizeof(path), "%s/other", folder);
    file = open(path, O_RDWR | O_CREAT, 0600);
    if (taken > 0 && posix_fallocate(file, 0, taken) != 0) {
        return 1;
    }
    for (uint32_t job = 0; job < jobs; job++) {
        uint64_t before = free_bytes();
        uint32_t ring = start_job(job, &pids[(size_t)job * PROCESSES]);

        fprintf(stderr, "job %u: rings of %u bytes, %llu of %llu bytes stay free\n", job, ring,
                (unsigned long long)free_bytes(), (unsigned long long)before);
        rc |= ring != wanted[job] || free_bytes() < before / 2;
    }
    for (uint32_t i = 0; i < jobs * PROCESSES; i++) {
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    }
    return rc;
}

/* The mount is the child's own. */
static void assert_served(uint32_t jobs, off_t taken, const uint32_t *wanted)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        _exit(serve(jobs, taken, wanted));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        print_message("a folder of its own cannot be mounted here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void all_are_served(void **state)
{
    assert_served(1, 0, (uint32_t[]){128 << 10});
}

static void in_what_others_leave(void **state)
{
    assert_served(1, ROOM * 3 / 4, (uint32_t[]){32 << 10});
}

static void a_job_after_another(void **state)
{
    assert_served(2, 0, (uint32_t[]){128 << 10, 64 << 10});
}

static int make(void **state)
{
    return mkdtemp(folder) == NULL;
}

static int unmake(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_served),
        cmocka_unit_test(in_what_others_leave),
        cmocka_unit_test(a_job_after_another),
    };

    return cmocka_run_group_tests(tests, make, unmake);
}
