/*
 * Ranks that call different collectives at the same place of a communicator, with messages of the same lengths: somebody gets an
 * MPI error, in the call or in the next one on the communicator, nobody a wrong result, and nobody hangs. The lane looks for
 * messages that name both collectives.
 *     unlike FORM COUNT LONE EVERY      all pairs of the calls below, or each so-manyth: rank LONE calls one, all others the other
 *     unlike FORM COUNT LONE CALL CALL  one pair
 * FORM: blocking, one pair after the other; nonblocking, persistent: all at once. COUNT: ints of a block.
 */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 100, MOST_RANKS = 8 };

struct call {
    const char *name;
    int root;
    MPI_Op op;
    MPI_Datatype type;
};

enum { /* places in calls */
       BARRIER,
       BCAST,
       SCATTER,
       GATHER,
       ALLGATHER,
       ALLTOALL,
       REDUCE,
       ALLREDUCE,
       REDUCE_SCATTER,
       REDUCE_SCATTER_BLOCK,
       SCAN,
       EXSCAN,
       SCATTERV,
       GATHERV,
       ALLGATHERV,
       ALLTOALLV,
       ALLTOALLW,
       COLLECTIVES,
       VARIANTS = 26
};

/* The collectives; then some of them again with another root, operator or type. */
static struct call calls[VARIANTS] = {
    [BARRIER] = {"barrier"},
    [BCAST] = {"bcast"},
    [SCATTER] = {"scatter"},
    [GATHER] = {"gather"},
    [ALLGATHER] = {"allgather"},
    [ALLTOALL] = {"alltoall"},
    [REDUCE] = {"reduce"},
    [ALLREDUCE] = {"allreduce"},
    [REDUCE_SCATTER] = {"reduce_scatter"},
    [REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block"},
    [SCAN] = {"scan"},
    [EXSCAN] = {"exscan"},
    [SCATTERV] = {"scatterv"},
    [GATHERV] = {"gatherv"},
    [ALLGATHERV] = {"allgatherv"},
    [ALLTOALLV] = {"alltoallv"},
    [ALLTOALLW] = {"alltoallw"},
};
static const int varied[VARIANTS - COLLECTIVES] = {BCAST,   SCATTER,   GATHER,    REDUCE, SCATTERV,
                                                   GATHERV, ALLREDUCE, ALLREDUCE, REDUCE};

static int rank, size, count, lone;
static int counts[MOST_RANKS], displs[MOST_RANKS], bytes[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];
static char running[200]; /* for the alarm */

/* One rank's part in a call. */
struct trial {
    int call;
    MPI_Comm comm;
    int *send, *recv;
    MPI_Request request;
    int rc;
};

static int which_of(int call)
{
    return call < COLLECTIVES ? call : varied[call - COLLECTIVES];
}

static void fill_calls(void)
{
    for (int i = 0; i < VARIANTS; i++) {
        calls[i] = (struct call){.name = calls[which_of(i)].name, .op = MPI_SUM, .type = MPI_INT};
        calls[i].root = i >= COLLECTIVES && which_of(i) != ALLREDUCE && i < VARIANTS - 1;
    }
    calls[VARIANTS - 3].op = MPI_MAX;
    calls[VARIANTS - 2].type = MPI_UNSIGNED;
    calls[VARIANTS - 1].op = MPI_MAX;
    for (int i = 0; i < size; i++) {
        counts[i] = count;
        displs[i] = i * count;
        bytes[i] = i * count * (int)sizeof(int);
        types[i] = MPI_INT;
    }
}

/* MPI_Name, MPI_Iname, or the persistent form, which is started too. */
#define START(Name, name, ...)                                                                     \
    (form == FORM_BLOCKING ? MPI_##Name(__VA_ARGS__)                                               \
     : form == FORM_NONBLOCKING                                                                    \
         ? MPI_I##name(__VA_ARGS__, &t->request)                                                   \
         : start(PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, &t->request), &t->request))

static int start(int rc, MPI_Request *request)
{
    return rc == MPI_SUCCESS ? MPI_Start(request) : rc;
}

static int start_reduction(struct trial *t, enum form form)
{
    const struct call *call = &calls[t->call];

    switch (which_of(t->call)) {
    case REDUCE:
        return START(Reduce, reduce, t->send, t->recv, count, call->type, call->op, call->root,
                     t->comm);
    case ALLREDUCE:
        return START(Allreduce, allreduce, t->send, t->recv, count, call->type, call->op, t->comm);
    case REDUCE_SCATTER:
        return START(Reduce_scatter, reduce_scatter, t->send, t->recv, counts, call->type, call->op,
                     t->comm);
    case REDUCE_SCATTER_BLOCK:
        return START(Reduce_scatter_block, reduce_scatter_block, t->send, t->recv, count,
                     call->type, call->op, t->comm);
    case SCAN:
        return START(Scan, scan, t->send, t->recv, count, call->type, call->op, t->comm);
    default:
        return START(Exscan, exscan, t->send, t->recv, count, call->type, call->op, t->comm);
    }
}

static int start_vector(struct trial *t, enum form form)
{
    int root = calls[t->call].root;

    switch (which_of(t->call)) {
    case SCATTERV:
        return START(Scatterv, scatterv, t->send, counts, displs, MPI_INT, t->recv, count, MPI_INT,
                     root, t->comm);
    case GATHERV:
        return START(Gatherv, gatherv, t->send, count, MPI_INT, t->recv, counts, displs, MPI_INT,
                     root, t->comm);
    case ALLGATHERV:
        return START(Allgatherv, allgatherv, t->send, count, MPI_INT, t->recv, counts, displs,
                     MPI_INT, t->comm);
    case ALLTOALLV:
        return START(Alltoallv, alltoallv, t->send, counts, displs, MPI_INT, t->recv, counts,
                     displs, MPI_INT, t->comm);
    default:
        return START(Alltoallw, alltoallw, t->send, counts, bytes, types, t->recv, counts, bytes,
                     types, t->comm);
    }
}

static int start_call(struct trial *t, enum form form)
{
    int root = calls[t->call].root, which = which_of(t->call);

    switch (which) {
    case BARRIER:
        return form == FORM_BLOCKING ? MPI_Barrier(t->comm)
               : form == FORM_NONBLOCKING
                   ? MPI_Ibarrier(t->comm, &t->request)
                   : start(PERSISTENT(Barrier)(t->comm, MPI_INFO_NULL, &t->request), &t->request);
    case BCAST:
        return START(Bcast, bcast, t->recv, count, MPI_INT, root, t->comm);
    case SCATTER:
        return START(Scatter, scatter, t->send, count, MPI_INT, t->recv, count, MPI_INT, root,
                     t->comm);
    case GATHER:
        return START(Gather, gather, t->send, count, MPI_INT, t->recv, count, MPI_INT, root,
                     t->comm);
    case ALLGATHER:
        return START(Allgather, allgather, t->send, count, MPI_INT, t->recv, count, MPI_INT,
                     t->comm);
    case ALLTOALL:
        return START(Alltoall, alltoall, t->send, count, MPI_INT, t->recv, count, MPI_INT, t->comm);
    default:
        return which <= EXSCAN ? start_reduction(t, form) : start_vector(t, form);
    }
}

static void trial_make(struct trial *t, int call, MPI_Comm comm)
{
    size_t n = (size_t)count * (size_t)size;

    *t = (struct trial){.call = call, .comm = comm, .request = MPI_REQUEST_NULL};
    t->send = malloc(n * sizeof(int));
    t->recv = malloc(n * sizeof(int));
    CHECK(t->send != NULL && t->recv != NULL, "no memory");
    for (size_t i = 0; i < n; i++) {
        t->send[i] = 1000 * call + 100 * rank + (int)(i % 100);
        t->recv[i] = -rank - (int)(i % 100);
    }
}

static void trial_free(struct trial *t)
{
    free(t->send);
    free(t->recv);
}

static void hangs(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, running, strlen(running));
    _exit(3);
}

static void begin(struct trial *t, enum form form)
{
    snprintf(running, sizeof(running), "rank %d hangs in %s\n", rank, calls[t->call].name);
    t->rc = start_call(t, form);
}

static void finish(struct trial *t, const struct trial *expected)
{
    if (t->rc == MPI_SUCCESS && t->request != MPI_REQUEST_NULL) {
        snprintf(running, sizeof(running), "rank %d hangs in %s\n", rank, calls[t->call].name);
        t->rc = MPI_Wait(&t->request, MPI_STATUS_IGNORE);
    }
    CHECK(t->rc != MPI_SUCCESS || memcmp(t->recv, expected[t->call].recv,
                                         (size_t)count * (size_t)size * sizeof(int)) == 0,
          "%s succeeded with a wrong result", calls[t->call].name);
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
        }
    }
}

static void run_pairs(struct trial *trials, int pairs, enum form form)
{
    struct trial expected[VARIANTS];
    int left;

    for (int i = 0; i < VARIANTS; i++) {
        trial_make(&expected[i], i, MPI_COMM_WORLD);
        CHECK(start_call(&expected[i], FORM_BLOCKING) == MPI_SUCCESS, "%s fails where all call it",
              calls[i].name);
    }
    for (int i = 0; i < pairs; i++) {
        begin(&trials[i], form);
        if (form == FORM_BLOCKING) {
            finish(&trials[i], expected);
        }
    }
    for (int i = 0; i < pairs; i++) {
        finish(&trials[i], expected);
        trial_free(&trials[i]);
    }
    left = unnoticed(trials, pairs);
    call_next(trials, pairs);
    CHECK(unnoticed(trials, pairs) == 0, "%d of %d pairs are noticed by nobody",
          unnoticed(trials, pairs), pairs);
    if (rank == 0) {
        printf("%d pairs of unlike calls, %d noticed in the next one\n", pairs, left);
    }
    for (int i = 0; i < VARIANTS; i++) {
        trial_free(&expected[i]);
    }
}

static bool is_pair(int a, int b)
{
    return (a < COLLECTIVES && b < COLLECTIVES && a != b) ||
           (a < COLLECTIVES && b >= COLLECTIVES && which_of(b) == a);
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

    while (call < COLLECTIVES && strcmp(calls[call].name, name) != 0) {
        call++;
    }
    CHECK(call < COLLECTIVES, "no collective is called %s", name);
    return call;
}

int main(int argc, char **argv)
{
    static struct trial trials[VARIANTS * VARIANTS];
    enum form form = FORM_BLOCKING;
    int pairs = 0, possible = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(argc >= 5 && size <= MOST_RANKS, "unlike FORM COUNT LONE EVERY or CALL CALL");
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
