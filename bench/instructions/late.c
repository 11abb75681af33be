/*
 * Rank 0 enters each collective when the others have done their part, as far as that needs no word
 * of it: what it executes in counted() is the work of the operation, mostly without a poll that
 * found nothing.
 *   late COLLECTIVE BYTES RUNS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static __attribute__((noinline)) void counted(void (*run)(int n), int n)
{
    run(n);
    __asm__ volatile("" ::: "memory"); /* no tail call: the function must stay on the stack */
}

static void run_all(void (*run)(int n), int n, int runs)
{
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < WARMUPS; i++) {
        run(n);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < runs; i++) {
        if (rank == 0) {
            nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
            counted(run, n);
        } else {
            run(n);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int n = argc == 4 ? atoi(argv[2]) : -1, runs = argc == 4 ? atoi(argv[3]) : 0;
    size_t i = 0;

    while (i < sizeof(table) / sizeof(table[0]) && (argc < 2 || strcmp(table[i].name, argv[1]))) {
        i++;
    }
    if (n < 0 || n > BYTES_MAX || runs < 1 || i == sizeof(table) / sizeof(table[0])) {
        fprintf(stderr, "usage: late COLLECTIVE BYTES RUNS\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    run_all(table[i].run, n, runs);
    MPI_Finalize();
    return 0;
}
