/*
 * Rank 0 enters each collective when the others have done their part, as far as that needs no word
 * of it: what it executes in counted() is the work of the operation, mostly without a poll that
 * found nothing. As a nonblocking collective (iNAME) and a persistent one (NAME_init) it is start and
 * wait together; early_iNAME and early_NAME_init start before the others enter, and wait after.
 *   late COLLECTIVE BYTES RUNS
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(Name) MPIX_##Name##_init
#else
#define PERSISTENT(Name) MPI_##Name##_init
#endif

enum { WARMUPS = 200, BYTES_MAX = 1 << 20, RANKS = 4, PAUSE = 3 * 1000 * 1000 /* ns */ };

static char in[RANKS * BYTES_MAX], out[RANKS * BYTES_MAX];
static int counts[RANKS], displs[RANKS];
static MPI_Datatype types[RANKS];

static void barrier(int n)
{
    (void)n;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 only receives. */
static void bcast(int n)
{
    MPI_Bcast(in, n, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void scatter(int n)
{
    MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, 1, MPI_COMM_WORLD);
}

/* Rank 0 only sends. */
static void root_bcast(int n)
{
    MPI_Bcast(in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void gather(int n)
{
    MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allgather(int n)
{
    MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int n)
{
    MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
}

static void reduce(int n)
{
    MPI_Reduce(in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int n)
{
    MPI_Allreduce(in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(int n)
{
    MPI_Scan(in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void exscan(int n)
{
    MPI_Exscan(in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter_block(int n)
{
    MPI_Reduce_scatter_block(in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The block of each rank has n bytes: the vector variants with the work of the others. */
static void prepare(int n)
{
    for (int i = 0; i < RANKS; i++) {
        counts[i] = n;
        displs[i] = i * n;
        types[i] = MPI_BYTE;
    }
}

static void gatherv(int n)
{
    prepare(n);
    MPI_Gatherv(in, n, MPI_BYTE, out, counts, displs, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatterv(int n)
{
    prepare(n);
    MPI_Scatterv(in, counts, displs, MPI_BYTE, out, n, MPI_BYTE, 1, MPI_COMM_WORLD);
}

static void allgatherv(int n)
{
    prepare(n);
    MPI_Allgatherv(in, n, MPI_BYTE, out, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallv(int n)
{
    prepare(n);
    MPI_Alltoallv(in, counts, displs, MPI_BYTE, out, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallw(int n)
{
    prepare(n);
    MPI_Alltoallw(in, counts, displs, types, out, counts, displs, types, MPI_COMM_WORLD);
}

static void reduce_scatter(int n)
{
    prepare(n / (int)sizeof(double));
    MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(int n);
} table[] = {
    {"barrier", barrier},       {"bcast", bcast},
    {"root_bcast", root_bcast}, {"scatter", scatter},
    {"gather", gather},         {"allgather", allgather},
    {"alltoall", alltoall},     {"reduce", reduce},
    {"allreduce", allreduce},   {"scan", scan},
    {"exscan", exscan},         {"reduce_scatter_block", reduce_scatter_block},
    {"gatherv", gatherv},       {"scatterv", scatterv},
    {"allgatherv", allgatherv}, {"alltoallv", alltoallv},
    {"alltoallw", alltoallw},   {"reduce_scatter", reduce_scatter},
};

#define FORMS(name, Name, ...)                                                                     \
    static void i##name(int n, MPI_Request *request)                                               \
    {                                                                                              \
        (void)n;                                                                                   \
        MPI_I##name(__VA_ARGS__, request);                                                         \
    }                                                                                              \
    static void name##_init(int n, MPI_Request *request)                                           \
    {                                                                                              \
        (void)n;                                                                                   \
        PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, request);                                     \
    }

FORMS(barrier, Barrier, MPI_COMM_WORLD)
FORMS(bcast, Bcast, in, n, MPI_BYTE, 1, MPI_COMM_WORLD)
FORMS(allgather, Allgather, in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD)
FORMS(alltoall, Alltoall, in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD)
FORMS(reduce, Reduce, in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD)
FORMS(allreduce, Allreduce, in, out, n / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)

/* The same with requests: of persistent ones begin() makes the request. */
static const struct form {
    const char *name;
    bool is_persistent;
    void (*begin)(int n, MPI_Request *request);
} forms[] = {
    {"ibarrier", false, ibarrier},
    {"ibcast", false, ibcast},
    {"iallgather", false, iallgather},
    {"ialltoall", false, ialltoall},
    {"ireduce", false, ireduce},
    {"iallreduce", false, iallreduce},
    {"barrier_init", true, barrier_init},
    {"bcast_init", true, bcast_init},
    {"allgather_init", true, allgather_init},
    {"alltoall_init", true, alltoall_init},
    {"reduce_init", true, reduce_init},
    {"allreduce_init", true, allreduce_init},
};

static const struct form *form; /* NULL: blocking */
static MPI_Request request = MPI_REQUEST_NULL;

static void start(int n)
{
    if (form->is_persistent) {
        MPI_Start(&request);
    } else {
        form->begin(n, &request);
    }
}

static void finish(int n)
{
    (void)n;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void start_and_finish(int n)
{
    start(n);
    finish(n);
}

/* Of an operation in two parts, of which counted() is the other. */
static __attribute__((noinline)) void counted_before(void (*run)(int n), int n)
{
    run(n);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void counted(void (*run)(int n), int n)
{
    run(n);
    __asm__ volatile("" ::: "memory"); /* no tail call: the function must stay on the stack */
}

static void pause_a_while(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
}

static void run_once(void (*run)(int n), int n, bool is_counted, bool is_early)
{
    if (!is_counted) {
        if (is_early) {
            pause_a_while();
        }
        run(n);
    } else if (is_early) {
        counted_before(start, n);
        pause_a_while();
        pause_a_while();
        counted(finish, n);
    } else {
        pause_a_while();
        counted(run, n);
    }
}

static void run_all(void (*run)(int n), int n, int runs, bool is_early)
{
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (form != NULL && form->is_persistent) {
        form->begin(n, &request);
    }
    for (int i = 0; i < WARMUPS; i++) {
        run(n);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < runs; i++) {
        run_once(run, n, rank == 0, is_early);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (form != NULL && form->is_persistent) {
        MPI_Request_free(&request);
    }
}

/* NULL: there is none of the name. */
static void (*find(const char *name))(int n)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].name, name) == 0) {
            return table[i].run;
        }
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(forms[i].name, name) == 0) {
            form = &forms[i];
            return start_and_finish;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc == 4 ? atoi(argv[2]) : -1, runs = argc == 4 ? atoi(argv[3]) : 0;
    bool is_early = argc == 4 && strncmp(argv[1], "early_", strlen("early_")) == 0;
    void (*run)(int n) = argc == 4 ? find(argv[1] + (is_early ? strlen("early_") : 0)) : NULL;

    if (n < 0 || n > BYTES_MAX || runs < 1 || run == NULL || (is_early && form == NULL)) {
        fprintf(stderr, "usage: late COLLECTIVE BYTES RUNS\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    run_all(run, n, runs, is_early);
    MPI_Finalize();
    return 0;
}
