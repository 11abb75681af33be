/* Ranks leave together by the clock. A barrier, which other benchmarks use, is worse: its last comer leaves first, up
 * to two latencies before the others. */
#include "nbcbench.h"

#include <math.h>
#include <sched.h>
#include <time.h>

enum { PINGS = 30 };

static const double least_margin = 50e-6, most_margin = 0.1; /* s */

/* MPI_Wtime() may count from another moment in each process. */
double bench_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool is_one_host(const struct bench *b)
{
    MPI_Comm host;
    int size;

    MPI_Comm_split_type(b->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &size);
    MPI_Comm_free(&host);
    return size == b->ranks;
}

/* Rank 0's clock less ours: as the quickest of some round trips has it. */
static double ask_offset(const struct bench *b)
{
    double best = INFINITY, offset = 0;

    for (int i = 0; i < PINGS; i++) {
        double before = bench_now(), theirs, after;

        MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, 1, &theirs, 1, MPI_DOUBLE, 0, 1, b->comm,
                     MPI_STATUS_IGNORE);
        after = bench_now();
        if (after - before < best) {
            best = after - before;
            offset = theirs - (before + after) / 2;
        }
    }
    return offset;
}

static void answer(const struct bench *b, int rank)
{
    for (int i = 0; i < PINGS; i++) {
        double now;

        MPI_Recv(NULL, 0, MPI_BYTE, rank, 1, b->comm, MPI_STATUS_IGNORE);
        now = bench_now();
        MPI_Send(&now, 1, MPI_DOUBLE, rank, 1, b->comm);
    }
}

void together_open(struct bench *b)
{
    b->offset = 0;
    b->margin = least_margin;
    if (b->options->barrier || is_one_host(b)) {
        return;
    }
    for (int rank = 1; rank < b->ranks; rank++) {
        if (b->rank == 0) {
            answer(b, rank);
        } else if (b->rank == rank) {
            b->offset = ask_offset(b);
        }
    }
}

/* Not asleep: on a machine with other work a sleeper comes back milliseconds late. */
static void wait_until(double time)
{
    while (bench_now() < time) {
        (void)sched_yield();
    }
}

/* The margin is what the slowest rank needed last time to hear of the start. */
double together_leave(struct bench *b)
{
    double mine[2] = {bench_now() + b->offset, b->margin}, all[2], start, needed;

    if (b->options->barrier) {
        MPI_Barrier(b->comm);
        return 0;
    }
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, b->comm);
    needed = bench_now() + b->offset - all[0];
    b->margin = fmin(fmax(1.5 * needed, least_margin), most_margin);
    start = all[0] + all[1] - b->offset;
    wait_until(start);
    return (bench_now() - start) * 1e6;
}
