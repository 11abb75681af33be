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
static MPI_Comm ring; /* each rank has two neighbours */

/* The block of each rank has n bytes: the vector variants with the work of the others. */
static void prepare(int n)
{
    for (int i = 0; i < RANKS; i++) {
        counts[i] = n;
        displs[i] = i * n;
        types[i] = MPI_BYTE;
    }
}

#define BLOCKING(name, Name, ...)                                                                  \
    static void name(int n)                                                                        \
    {                                                                                              \
        (void)n;                                                                                   \
        MPI_##Name(__VA_ARGS__);                                                                   \
    }
#define VECTOR(name, Name, block, ...)                                                             \
    static void name(int n)                                                                        \
    {                                                                                              \
        prepare(block);                                                                            \
        MPI_##Name(__VA_ARGS__);                                                                   \
    }
#define REQUESTS(name, Name, ...)                                                                  \
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
/* In all forms. */
#define FORMS(name, Name, ...)                                                                     \
    BLOCKING(name, Name, __VA_ARGS__)                                                              \
    REQUESTS(name, Name, __VA_ARGS__)

#define WORLD   MPI_COMM_WORLD
#define DOUBLES (n / (int)sizeof(double))
#define SENT    in, n, MPI_BYTE
#define GIVEN   out, n, MPI_BYTE
#define SENT_V  in, counts, displs, MPI_BYTE
#define GIVEN_V out, counts, displs, MPI_BYTE
#define SUMMED  in, out, DOUBLES, MPI_DOUBLE, MPI_SUM

FORMS(barrier, Barrier, WORLD)
FORMS(bcast, Bcast, SENT, 1, WORLD)         /* rank 0 only receives */
BLOCKING(root_bcast, Bcast, SENT, 0, WORLD) /* rank 0 only sends */
BLOCKING(scatter, Scatter, SENT, GIVEN, 1, WORLD)
BLOCKING(gather, Gather, SENT, GIVEN, 0, WORLD)
FORMS(allgather, Allgather, SENT, GIVEN, WORLD)
FORMS(alltoall, Alltoall, SENT, GIVEN, WORLD)
FORMS(reduce, Reduce, SUMMED, 0, WORLD)
FORMS(allreduce, Allreduce, SUMMED, WORLD)
BLOCKING(scan, Scan, SUMMED, WORLD)
BLOCKING(exscan, Exscan, SUMMED, WORLD)
BLOCKING(reduce_scatter_block, Reduce_scatter_block, SUMMED, WORLD)
VECTOR(gatherv, Gatherv, n, SENT, GIVEN_V, 0, WORLD)
VECTOR(scatterv, Scatterv, n, SENT_V, GIVEN, 1, WORLD)
VECTOR(allgatherv, Allgatherv, n, SENT, GIVEN_V, WORLD)
VECTOR(alltoallv, Alltoallv, n, SENT_V, GIVEN_V, WORLD)
VECTOR(alltoallw, Alltoallw, n, in, counts, displs, types, out, counts, displs, types, WORLD)
VECTOR(reduce_scatter, Reduce_scatter, DOUBLES, in, out, counts, MPI_DOUBLE, MPI_SUM, WORLD)
FORMS(neighbor_allgather, Neighbor_allgather, SENT, GIVEN, ring)
FORMS(neighbor_alltoall, Neighbor_alltoall, SENT, GIVEN, ring)
VECTOR(neighbor_allgatherv, Neighbor_allgatherv, n, SENT, GIVEN_V, ring)
VECTOR(neighbor_alltoallv, Neighbor_alltoallv, n, SENT_V, GIVEN_V, ring)

/* With requests begin() starts the operation, or makes the request of a persistent one. */
static const struct form {
    const char *name;
    void (*run)(int n);
    void (*begin)(int n, MPI_Request *request);
    bool is_persistent;
} forms[] = {
    {"barrier", .run = barrier},
    {"bcast", .run = bcast},
    {"allgather", .run = allgather},
    {"alltoall", .run = alltoall},
    {"reduce", .run = reduce},
    {"allreduce", .run = allreduce},
    {"root_bcast", .run = root_bcast},
    {"scatter", .run = scatter},
    {"gather", .run = gather},
    {"scan", .run = scan},
    {"exscan", .run = exscan},
    {"reduce_scatter_block", .run = reduce_scatter_block},
    {"gatherv", .run = gatherv},
    {"scatterv", .run = scatterv},
    {"allgatherv", .run = allgatherv},
    {"alltoallv", .run = alltoallv},
    {"alltoallw", .run = alltoallw},
    {"reduce_scatter", .run = reduce_scatter},
    {"neighbor_allgather", .run = neighbor_allgather},
    {"neighbor_alltoall", .run = neighbor_alltoall},
    {"neighbor_allgatherv", .run = neighbor_allgatherv},
    {"neighbor_alltoallv", .run = neighbor_alltoallv},
    {"ibarrier", .begin = ibarrier},
    {"ibcast", .begin = ibcast},
    {"iallgather", .begin = iallgather},
    {"ialltoall", .begin = ialltoall},
    {"ireduce", .begin = ireduce},
    {"iallreduce", .begin = iallreduce},
    {"ineighbor_allgather", .begin = ineighbor_allgather},
    {"ineighbor_alltoall", .begin = ineighbor_alltoall},
    {"barrier_init", .begin = barrier_init, .is_persistent = true},
    {"bcast_init", .begin = bcast_init, .is_persistent = true},
    {"allgather_init", .begin = allgather_init, .is_persistent = true},
    {"alltoall_init", .begin = alltoall_init, .is_persistent = true},
    {"reduce_init", .begin = reduce_init, .is_persistent = true},
    {"allreduce_init", .begin = allreduce_init, .is_persistent = true},
    {"neighbor_allgather_init", .begin = neighbor_allgather_init, .is_persistent = true},
    {"neighbor_alltoall_init", .begin = neighbor_alltoall_init, .is_persistent = true},
};

static const struct form *form;
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
    bool is_of_neighbors = strstr(form->name, "neighbor") != NULL;
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (is_of_neighbors) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &(int){1}, 0, &ring);
    }
    if (form->is_persistent) {
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
    if (form->is_persistent) {
        MPI_Request_free(&request);
    }
    if (is_of_neighbors) {
        MPI_Comm_free(&ring);
    }
}

/* NULL: there is none of the name. */
static void (*find(const char *name))(int n)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(forms[i].name, name) == 0) {
            form = &forms[i];
            return form->run != NULL ? form->run : start_and_finish;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int n = argc == 4 ? atoi(argv[2]) : -1, runs = argc == 4 ? atoi(argv[3]) : 0;
    bool is_early = argc == 4 && strncmp(argv[1], "early_", strlen("early_")) == 0;
    void (*run)(int n) = argc == 4 ? find(argv[1] + (is_early ? strlen("early_") : 0)) : NULL;

    if (n < 0 || n > BYTES_MAX || runs < 1 || run == NULL || (is_early && form->begin == NULL)) {
        fprintf(stderr, "usage: late COLLECTIVE BYTES RUNS\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    run_all(run, n, runs, is_early);
    MPI_Finalize();
    return 0;
}
