/*
 * Two ranks, of which rank 0 enters each collective when the other has done its part: what it
 * executes in counted() is the work of the operation, without a poll that found nothing.
 *   late COLLECTIVE BYTES RUNS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARMUPS = 200, BYTES_MAX = 1 << 20, PAUSE = 3 * 1000 * 1000 /* ns */ };

static char in[2 * BYTES_MAX], out[2 * BYTES_MAX];

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

static const struct {
    const char *name;
    void (*run)(int n);
} table[] = {
    {"barrier", barrier},   {"bcast", bcast},   {"root_bcast", root_bcast},
    {"scatter", scatter},   {"gather", gather}, {"allgather", allgather},
    {"alltoall", alltoall}, {"reduce", reduce}, {"allreduce", allreduce},
};

static __attribute__((noinline)) void counted(void (*run)(int n), int n)
{
    run(n);
    __asm__ volatile("" ::: "memory"); /* no tail call: the function must stay on the stack */
}

static void run_all(void (*run)(int n), int n, int runs)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
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
