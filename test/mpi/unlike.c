/*
 * Ranks that call different collectives at the same place of a communicator, with messages of the same lengths: somebody gets an
 * MPI error, in the call or in the next one on the communicator, nobody a wrong result, and nobody hangs. The lane looks for
 * messages that name both collectives.
 *     unlike FORM COUNT LONE EVERY      all pairs of the calls below, or each so-manyth: rank LONE calls one, all others the other
 *     unlike FORM COUNT LONE CALL CALL  one pair
 * FORM: blocking, one pair after the other; nonblocking, persistent: all at once. COUNT: ints of a block.
 */
#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 100, VARIANTS = 26 };

/* The collectives; then some of them again with another root, operator or type. */
static struct call {
    enum job_collective which;
    bool is_varied;
    int root;
    MPI_Op op;
    MPI_Datatype type;
} calls[VARIANTS];

static int rank, count, lone;
static char running[200]; /* for the alarm */

/* One rank's part in a call. */
struct trial {
    int call;
    MPI_Comm comm;
    struct job job;
    MPI_Request request;
    int rc;
};

static void fill_calls(void)
{
    const struct call varied[] = {
        {JOB_BCAST, true, 1, MPI_SUM, MPI_INT},     {JOB_SCATTER, true, 1, MPI_SUM, MPI_INT},
        {JOB_GATHER, true, 1, MPI_SUM, MPI_INT},    {JOB_REDUCE, true, 1, MPI_SUM, MPI_INT},
        {JOB_SCATTERV, true, 1, MPI_SUM, MPI_INT},  {JOB_GATHERV, true, 1, MPI_SUM, MPI_INT},
        {JOB_ALLREDUCE, true, 0, MPI_MAX, MPI_INT}, {JOB_ALLREDUCE, true, 0, MPI_SUM, MPI_UNSIGNED},
        {JOB_REDUCE, true, 0, MPI_MAX, MPI_INT},
    };

    for (int i = 0; i < JOB_COLLECTIVE_COUNT; i++) {
        calls[i] = (struct call){(enum job_collective)i, false, 0, MPI_SUM, MPI_INT};
    }
    memcpy(&calls[JOB_COLLECTIVE_COUNT], varied, sizeof(varied));
}

static void trial_make(struct trial *t, int call, MPI_Comm comm)
{
    const struct call *c = &calls[call];

    *t = (struct trial){.call = call, .comm = comm, .request = MPI_REQUEST_NULL};
    t->job = job_of(comm, c->which, count, c->root, c->op, c->type, 0);
    job_fill(&t->job);
}

static void hangs(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, running, strlen(running));
    _exit(3);
}

static void begin(struct trial *t, enum form form)
{
    snprintf(running, sizeof(running), "rank %d hangs in %s\n", rank, job_names[t->job.which]);
    t->rc = job_start(&t->job, t->comm, form, &t->request);
}

/* PATH.RANK.err: mpirun of Open MPI 5.0.7 loses parts of what many ranks say at once. */
static void keep_errors(const char *path)
{
    char mine[4096];

    snprintf(mine, sizeof(mine), "%s.%d.err", path, rank);
    CHECK(freopen(mine, "w", stderr) != NULL, "%s cannot be written", mine);
    setvbuf(stderr, NULL, _IONBF, 0);
}

/* Nobody has died: a program that tolerates deaths need not look for them. */
static void look_at(int rc, const char *name)
{
    int class;

    if (rc != MPI_SUCCESS) {
        MPI_Error_class(rc, &class);
        CHECK(class == MPI_ERR_OTHER || class == MPI_ERR_TRUNCATE, "%s: an error of class %d", name,
              class);
    }
}

static void finish(struct trial *t, const struct trial *expected)
{
    if (t->rc == MPI_SUCCESS && t->request != MPI_REQUEST_NULL) {
        snprintf(running, sizeof(running), "rank %d hangs in %s\n", rank, job_names[t->job.which]);
        t->rc = MPI_Wait(&t->request, MPI_STATUS_IGNORE);
    }
    look_at(t->rc, job_names[t->job.which]);
    CHECK(t->rc != MPI_SUCCESS || memcmp(t->job.recv.memory, expected[t->call].job.recv.memory,
                                         t->job.recv.compared) == 0,
          "%s succeeded with a wrong result", job_names[t->job.which]);
}

/* How many pairs have failed nowhere. */
static int unnoticed(const struct trial *trials, int pairs)
{
    int *failed = calloc((size_t)pairs, sizeof(*failed)), left = 0;

    CHECK(failed != NULL, "no memory");
    for (int i = 0; i < pairs; i++) {
        failed[i] = trials[i].rc != MPI_SUCCESS;
    }
    MPI_Allreduce(MPI_IN_PLACE, failed, pairs, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < pairs; i++) {
        left += !failed[i];
    }
    free(failed);
    return left;
}

/* Where neither side needs anything of the other, the next call on the communicator fails. */
static void call_next(struct trial *trials, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        if (trials[i].rc == MPI_SUCCESS) {
            trials[i].rc = MPI_Ibarrier(trials[i].comm, &trials[i].request);
        }
    }
    for (int i = 0; i < pairs; i++) {
        if (trials[i].rc == MPI_SUCCESS) {
            snprintf(running, sizeof(running), "rank %d hangs behind pair %d\n", rank, i);
            trials[i].rc = MPI_Wait(&trials[i].request, MPI_STATUS_IGNORE);
            look_at(trials[i].rc, "the next one");
        }
    }
}

static void run_pairs(struct trial *trials, int pairs, enum form form)
{
    struct trial expected[VARIANTS];
    int left;

    for (int i = 0; i < VARIANTS; i++) {
        trial_make(&expected[i], i, MPI_COMM_WORLD);
        CHECK(job_start(&expected[i].job, MPI_COMM_WORLD, FORM_BLOCKING, &expected[i].request) ==
                  MPI_SUCCESS,
              "%s fails where all call it", job_names[calls[i].which]);
    }
    for (int i = 0; i < pairs; i++) {
        begin(&trials[i], form);
        if (form == FORM_BLOCKING) {
            finish(&trials[i], expected);
        }
    }
    for (int i = 0; i < pairs; i++) {
        finish(&trials[i], expected);
        job_free(&trials[i].job);
    }
    left = unnoticed(trials, pairs);
    call_next(trials, pairs);
    CHECK(unnoticed(trials, pairs) == 0, "%d of %d pairs are noticed by nobody",
          unnoticed(trials, pairs), pairs);
    if (rank == 0) {
        printf("%d pairs of unlike calls, %d noticed in the next one\n", pairs, left);
    }
    for (int i = 0; i < VARIANTS; i++) {
        job_free(&expected[i].job);
    }
}

static bool is_pair(int a, int b)
{
    return !calls[a].is_varied && (calls[b].is_varied ? (int)calls[b].which == a : a != b);
}

static void add(struct trial *trials, int *pairs, int a, int b)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    trial_make(&trials[(*pairs)++], rank == lone ? a : b, comm);
}

static int find(const char *name)
{
    int call = 0;

    while (call < JOB_COLLECTIVE_COUNT && strcmp(job_names[call], name) != 0) {
        call++;
    }
    CHECK(call < JOB_COLLECTIVE_COUNT, "no collective is called %s", name);
    return call;
}

int main(int argc, char **argv)
{
    static struct trial trials[VARIANTS * VARIANTS];
    enum form form = FORM_BLOCKING;
    int pairs = 0, possible = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (getenv("UNLIKE_SAID") != NULL) {
        keep_errors(getenv("UNLIKE_SAID"));
    }
    CHECK(argc >= 5, "unlike FORM COUNT LONE EVERY or CALL CALL");
    while (form < FORM_COUNT && strcmp(form_names[form], argv[1]) != 0) {
        form++;
    }
    CHECK(form < FORM_COUNT, "no form is called %s", argv[1]);
    count = atoi(argv[2]);
    lone = atoi(argv[3]);
    fill_calls();
    if (argc == 6) {
        add(trials, &pairs, find(argv[4]), find(argv[5]));
    }
    for (int a = 0; a < VARIANTS && argc == 5; a++) {
        for (int b = 0; b < VARIANTS; b++) {
            if (is_pair(a, b) && possible++ % atoi(argv[4]) == 0) {
                add(trials, &pairs, a, b);
            }
        }
    }
    signal(SIGALRM, hangs);
    alarm(PATIENCE);
    run_pairs(trials, pairs, form);
    MPI_Finalize();
    return 0;
}
