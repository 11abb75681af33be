/*
 * Collectives in which something fails. Everybody that lives gets, from each call, the right result
 * or an MPI error, and in time; communicators without the dead go on working (not those of two
 * living ranks that had a long message between them in a collective that failed: only the end of
 * their connection keeps it from being written later).
 *     failing killed FORM BYTES     ranks 3 and up kill themselves inside all 17 collectives at
 * once
 *     failing EXPECT JOBS COMMAND   rank 0 runs COMMAND in the middle of blocking collectives
 *     failing HOW VICTIM COMMAND    rank 0 runs COMMAND, which may kill rank VICTIM, while all make
 * communicators: each rank that lives gets an error, and stays until all others have one too
 *     failing early VICTIM SEED     rank VICTIM kills itself before one of the first collectives
 *     failing several VICTIM BYTES  rank VICTIM kills itself inside nonblocking collectives of one
 * communicator
 *     failing unlike BYTES -        rank 0 calls with another count; or fatal_unlike
 * FORM: nonblocking, persistent. EXPECT: right, error, any, or fatal, which is error under
 * MPI_ERRORS_ARE_FATAL. HOW: dup, idup, split, split_type, create, create_group, or fatal_dup.
 * Unless all is right it ends without MPI_Finalize, which would wait for the dead.
 */

#include "job.h"
#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SURVIVORS = 3, PATIENCE = 60, EAGER = 4096 };

static int rank, size, errors, right;
static char running[256]; /* for the alarm */

/* One collective with a victim of its own: what a first run without faults gave, and the second. */
struct trial {
    MPI_Comm comm;
    struct job job;
    char *expected;
    MPI_Request request;
    bool is_mine;
};

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check_result(const struct job *job, const char *expected, int rc)
{
    char what[256], text[MPI_MAX_ERROR_STRING];
    int length;

    job_describe(job, what, sizeof(what));
    if (rc != MPI_SUCCESS) {
        CHECK(MPI_Error_string(rc, text, &length) == MPI_SUCCESS, "%s: no error code: %d", what,
              rc);
        errors++;
        return;
    }
    CHECK(memcmp(job->recv.memory, expected, job->recv.compared) == 0,
          "%s: succeeded with a wrong result", what);
    right++;
}

/* The job's first run, while all is well. */
static void expect(struct trial *trial, MPI_Comm comm, const struct job_kit *kit, uint64_t seed,
                   enum job_collective which, long bytes)
{
    int rc;

    trial->job = job_draw(kit, comm, seed, which, bytes);
    trial->expected = malloc(trial->job.recv.size);
    CHECK(trial->expected != NULL, "no memory");
    job_fill(&trial->job);
    rc = job_start(&trial->job, comm, FORM_BLOCKING, &trial->request);
    CHECK(rc == MPI_SUCCESS, "%s failed before anything happened", job_names[trial->job.which]);
    memcpy(trial->expected, trial->job.recv.memory, trial->job.recv.size);
}

static void trial_begin(struct trial *trial, const struct job_kit *kit, int which, long bytes)
{
    int victim = SURVIVORS + which % (size - SURVIVORS);

    trial->is_mine = rank < SURVIVORS || rank == victim;
    trial->request = MPI_REQUEST_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, trial->is_mine ? 0 : MPI_UNDEFINED, rank, &trial->comm);
    if (!trial->is_mine) {
        return;
    }
    MPI_Comm_set_errhandler(trial->comm, MPI_ERRORS_RETURN);
    expect(trial, trial->comm, kit, (uint64_t)which * 77 + (uint64_t)bytes,
           (enum job_collective)which, bytes);
}

/* Half of the collectives see their victim die on the way to them, the other half inside. */
static bool is_too_late(int which, long bytes)
{
    return (which + bytes) % 2 == 0;
}

/* A few steps into those that have begun, and gone. */
static void die(struct trial *trials)
{
    for (int i = 0; i < JOB_COLLECTIVE_COUNT; i++) {
        int done;
        for (int k = 0; trials[i].request != MPI_REQUEST_NULL && k < i % 4; k++) {
            MPI_Test(&trials[i].request, &done, MPI_STATUS_IGNORE);
        }
    }
    raise(SIGKILL);
}

static int wait_for(struct trial *trial, double deadline)
{
    MPI_Status status;
    int done = 0, rc = MPI_SUCCESS;

    while (!done && rc == MPI_SUCCESS) {
        rc = MPI_Test(&trial->request, &done, &status);
        CHECK(seconds() < deadline, "%s hangs", job_names[trial->job.which]);
    }
    check_result(&trial->job, trial->expected, rc);
    return rc;
}

static void killed(enum form form, long bytes)
{
    struct trial trials[JOB_COLLECTIVE_COUNT] = {0};
    struct job_kit *kit = job_kit_create();
    MPI_Comm living;
    double begin;

    CHECK(size > SURVIVORS, "more than %d ranks are needed", SURVIVORS);
    MPI_Comm_split(MPI_COMM_WORLD, rank < SURVIVORS, rank, &living);
    for (int i = 0; i < JOB_COLLECTIVE_COUNT; i++) {
        trial_begin(&trials[i], kit, i, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < JOB_COLLECTIVE_COUNT; i++) {
        if (trials[i].is_mine && !(rank >= SURVIVORS && is_too_late(i, bytes))) {
            int rc;
            job_fill(&trials[i].job);
            rc = job_start(&trials[i].job, trials[i].comm, form, &trials[i].request);
            CHECK(rc == MPI_SUCCESS || rank < SURVIVORS, "%s did not start", job_names[i]);
        }
    }
    if (rank >= SURVIVORS) {
        die(trials);
    }
    begin = seconds();
    for (int i = 0; i < JOB_COLLECTIVE_COUNT; i++) {
        int rc = wait_for(&trials[i], begin + PATIENCE);
        CHECK(i != JOB_BARRIER || !is_too_late(i, bytes) || rc != MPI_SUCCESS,
              "a barrier is passed by one who has not come");
    }
    if (bytes <= EAGER) {
        check_communicator(living);
        MPI_Barrier(living);
    }
    printf("rank %d: %d errors, %d right, after %.1f s\n", rank, errors, right, seconds() - begin);
    CHECK(errors > 0, "nobody noticed");
}

/* All are under way when the victim has begun half of them and dies. */
static void several(int victim, long bytes)
{
    enum { SEVERAL = 12 };
    struct trial trials[SEVERAL] = {0};
    struct job_kit *kit = job_kit_create();
    double begin;

    for (int i = 0; i < SEVERAL; i++) {
        expect(&trials[i], MPI_COMM_WORLD, kit, (uint64_t)i, JOB_COLLECTIVE_COUNT, bytes);
        job_fill(&trials[i].job);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < SEVERAL; i++) {
        int rc;

        if (rank == victim && i == SEVERAL / 2) {
            raise(SIGKILL);
        }
        rc = job_start(&trials[i].job, MPI_COMM_WORLD, FORM_NONBLOCKING, &trials[i].request);
        CHECK(rc == MPI_SUCCESS || trials[i].request == MPI_REQUEST_NULL,
              "%s has an error and a request", job_names[trials[i].job.which]);
        if (rc != MPI_SUCCESS) {
            check_result(&trials[i].job, trials[i].expected, rc);
            trials[i].is_mine = true;
        }
    }
    begin = seconds();
    for (int i = 0; i < SEVERAL; i++) {
        if (!trials[i].is_mine) {
            (void)wait_for(&trials[i], begin + PATIENCE);
        }
    }
    printf("rank %d: %d errors, %d right, after %.1f s\n", rank, errors, right, seconds() - begin);
    CHECK(errors > 0, "nobody noticed");
}

static void hangs(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, running, strlen(running));
    _exit(3);
}

static void run_again(struct trial *trial)
{
    char what[200];

    job_describe(&trial->job, what, sizeof(what));
    snprintf(running, sizeof(running), "rank %d hangs in %s\n", rank, what);
    alarm(PATIENCE);
    job_fill(&trial->job);
    check_result(&trial->job, trial->expected,
                 job_start(&trial->job, MPI_COMM_WORLD, FORM_BLOCKING, &trial->request));
    alarm(0);
}

static void loop(const char *expected, int jobs, const char *command)
{
    struct trial *trials = calloc((size_t)jobs, sizeof(*trials));
    struct job_kit *kit = job_kit_create();
    double begin;

    CHECK(trials != NULL && jobs >= 2, "2 jobs at least");
    signal(SIGALRM, hangs);
    for (int i = 0; i < jobs; i++) {
        expect(&trials[i], MPI_COMM_WORLD, kit, (uint64_t)i, JOB_COLLECTIVE_COUNT,
               i % 3 == 2 ? 20000 : i % 3 * 300);
    }
    begin = seconds();
    /* What is to fail goes on until it does: how soon a fault is seen is no matter of collectives. */
    for (int i = 0; i < jobs ||
                    (strcmp(expected, "right") != 0 && errors == 0 && seconds() - begin < PATIENCE);
         i++) {
        if (rank == 0 && i == jobs / 2) {
            CHECK(system(command) == 0, "'%s' failed", command);
        }
        run_again(&trials[i % jobs]);
        CHECK(errors == 0 || i >= jobs / 2 || rank != 0, "a collective failed too early");
    }
    printf("rank %d: %d errors, %d right, after %.1f s\n", rank, errors, right, seconds() - begin);
    CHECK(strcmp(expected, "fatal") != 0, "an error did not end the job");
    CHECK(strcmp(expected, "error") != 0 || errors > 0, "nobody noticed");
    CHECK(strcmp(expected, "right") != 0 || errors == 0, "a collective failed");
    for (int i = 0; i < jobs; i++) {
        job_free(&trials[i].job);
        free(trials[i].expected);
    }
    free(trials);
    job_kit_free(kit);
}

static int make_idup(MPI_Comm *made)
{
    MPI_Request request;
    int rc = MPI_Comm_idup(MPI_COMM_WORLD, made, &request);

    return rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static int make_of_group(MPI_Comm *made, bool by_group)
{
    MPI_Group group;
    int rc;

    MPI_Comm_group(MPI_COMM_WORLD, &group);
    rc = by_group ? MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, made)
                  : MPI_Comm_create(MPI_COMM_WORLD, group, made);
    MPI_Group_free(&group);
    return rc;
}

static int make(const char *how, MPI_Comm *made)
{
    if (strcmp(how, "idup") == 0) {
        return make_idup(made);
    }
    if (strcmp(how, "split") == 0) {
        return MPI_Comm_split(MPI_COMM_WORLD, 0, rank, made);
    }
    if (strcmp(how, "split_type") == 0) {
        return MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, made);
    }
    if (strcmp(how, "create") == 0 || strcmp(how, "create_group") == 0) {
        return make_of_group(made, strcmp(how, "create_group") == 0);
    }
    return MPI_Comm_dup(MPI_COMM_WORLD, made);
}

/* Who has its error says so, and goes on making progress until all others have said so: nobody is
   to notice it by an exit. */
static void tell_the_others(int victim)
{
    int note = 0;

    for (int other = 0; other < size; other++) {
        if (other != victim && other != rank) {
            MPI_Send(&note, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
        }
    }
    for (int other = 0; other < size; other++) {
        if (other != victim && other != rank) {
            snprintf(running, sizeof(running), "rank %d has its error, rank %d has none\n", rank,
                     other);
            MPI_Recv(&note, 1, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void creating(const char *how, int victim, const char *command)
{
    enum { MOST = 20000, BEFORE = 20 };
    double begin = seconds();
    int rc = MPI_SUCCESS, count = 0;

    signal(SIGALRM, hangs);
    while (rc == MPI_SUCCESS && count < MOST) {
        MPI_Comm made = MPI_COMM_NULL;
        if (rank == 0 && count == BEFORE) {
            CHECK(system(command) == 0, "'%s' failed", command);
            begin = seconds();
        }
        snprintf(running, sizeof(running), "rank %d hangs in %s %d\n", rank, how, count++);
        alarm(PATIENCE);
        rc = make(how, &made);
        if (rc == MPI_SUCCESS) {
            MPI_Comm_set_errhandler(made, strncmp(how, "fatal", 5) == 0 ? MPI_ERRORS_ARE_FATAL
                                                                        : MPI_ERRORS_RETURN);
            rc = MPI_Barrier(made);
            MPI_Comm_free(&made);
        }
    }
    CHECK(rc != MPI_SUCCESS, "nobody noticed");
    CHECK(strncmp(how, "fatal", 5) != 0, "an error did not end the job");
    printf("rank %d: error in communicator %d after %.1f s\n", rank, count, seconds() - begin);
    fflush(stdout);
    tell_the_others(victim);
}

static bool makes_communicators(const char *mode)
{
    static const char *const hows[] = {"dup",    "idup",         "split",    "split_type",
                                       "create", "create_group", "fatal_dup"};

    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        if (strcmp(mode, hows[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The victim ends after as many collectives as the seed says: from none on, so mostly before it is
   connected with everybody. */
static void early(int victim, uint64_t seed)
{
    enum { LATEST = 4, MOST = 1000 };
    struct job_kit *kit = job_kit_create();
    struct trial trial = {.comm = MPI_COMM_WORLD};
    double begin = seconds();
    int rc = MPI_SUCCESS;

    signal(SIGALRM, hangs);
    for (uint64_t i = 0; rc == MPI_SUCCESS && i < MOST; i++) {
        if (rank == victim && i == seed % LATEST) {
            raise(SIGKILL);
        }
        trial.job = job_draw(kit, MPI_COMM_WORLD, seed * MOST + i, JOB_COLLECTIVE_COUNT,
                             i % 3 == 2 ? 20000 : 300);
        snprintf(running, sizeof(running), "rank %d hangs in %s\n", rank,
                 job_names[trial.job.which]);
        alarm(PATIENCE);
        job_fill(&trial.job);
        rc = job_start(&trial.job, MPI_COMM_WORLD, FORM_BLOCKING, &trial.request);
        job_free(&trial.job);
    }
    CHECK(rc != MPI_SUCCESS, "nobody noticed");
    printf("rank %d: an error after %.1f s\n", rank, seconds() - begin);
    fflush(stdout);
    tell_the_others(victim);
}

/* Rank 0 has another count. Each rank gets an error from it or from the next collective, and all
   can end as usual. */
static void unlike(int bytes)
{
    char *out = calloc(2, (size_t)bytes), *in = calloc(2, (size_t)bytes);
    int rc = MPI_SUCCESS;

    CHECK(out != NULL && in != NULL, "no memory");
    signal(SIGALRM, hangs);
    snprintf(running, sizeof(running), "rank %d hangs\n", rank);
    alarm(PATIENCE);
    for (int i = 0; rc == MPI_SUCCESS && i < 2; i++) {
        rc = MPI_Allreduce(out, in, rank == 0 && i == 0 ? 2 * bytes : bytes, MPI_CHAR, MPI_MAX,
                           MPI_COMM_WORLD);
    }
    CHECK(rc != MPI_SUCCESS, "nobody noticed");
    tell_the_others(-1);
    MPI_Finalize();
    free(out);
    free(in);
    exit(0);
}

int main(int argc, char **argv)
{
    const char *mode = argc == 4 ? argv[1] : "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strncmp(mode, "fatal", 5) !=
        0) { /* Open MPI 4.1 hands the errors of requests to it as well */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    CHECK(mode[0] != '\0', "failing killed FORM BYTES | several VICTIM BYTES | "
                           "early VICTIM SEED | unlike BYTES - | "
                           "EXPECT JOBS COMMAND | HOW VICTIM COMMAND");
    if (strcmp(mode, "killed") == 0) {
        bool is_persistent = strcmp(argv[2], "persistent") == 0;
        killed(is_persistent ? FORM_PERSISTENT : FORM_NONBLOCKING, atol(argv[3]));
    } else if (strcmp(mode, "several") == 0) {
        several(atoi(argv[2]), atol(argv[3]));
    } else if (strcmp(mode, "early") == 0) {
        early(atoi(argv[2]), strtoul(argv[3], NULL, 0));
    } else if (strcmp(mode, "unlike") == 0 || strcmp(mode, "fatal_unlike") == 0) {
        unlike(atoi(argv[2]));
    } else if (makes_communicators(mode)) {
        creating(mode, atoi(argv[2]), argv[3]);
    } else {
        loop(mode, atoi(argv[2]), argv[3]);
    }
    if (strcmp(mode, "right") == 0) {
        MPI_Finalize();
        return 0;
    }
    fflush(stdout);
    _exit(0);
}
