/*
 * A collective of every kind for coll_ibshift_trace: several in flight, persistent ones, roots, an
 * operator that does not commute, and communicators of several sizes.
 */
#include <stdlib.h>

#include "check.h"

enum { COUNT = 300, MOST = 64 };

static int from[COUNT * MOST], to[COUNT * MOST];

static void first(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int *a = in, *b = inout;

    for (int i = 0; i < *count; i++) {
        b[i] = a[i];
    }
    (void)type;
}

static void blocking(MPI_Comm comm, int root)
{
    int n = COUNT, rank, size, counts[MOST], places[MOST];

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        counts[i] = i;
        places[i] = i * n;
    }
    MPI_Barrier(comm);
    MPI_Bcast(from, n, MPI_INT, root, comm);
    MPI_Scatter(from, 1, MPI_INT, to, 1, MPI_INT, root, comm);
    MPI_Gather(from, n, MPI_INT, to, n, MPI_INT, root, comm);
    MPI_Gatherv(from, rank, MPI_INT, to, counts, places, MPI_INT, root, comm);
    MPI_Scatterv(from, counts, places, MPI_INT, to, rank, MPI_INT, root, comm);
    MPI_Allgather(from, n, MPI_INT, to, n, MPI_INT, comm);
    MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, comm);
    MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    MPI_Reduce(from, to, n, MPI_INT, MPI_SUM, root, comm);
    MPI_Reduce_scatter_block(from, to, 2, MPI_INT, MPI_SUM, comm);
    MPI_Exscan(from, to, n, MPI_INT, MPI_SUM, comm);
}

static void in_flight(MPI_Comm comm, int root, MPI_Op op)
{
    static int other[COUNT * MOST];
    MPI_Request requests[3];

    MPI_Iallreduce(from, to, COUNT, MPI_INT, op, comm, &requests[0]);
    MPI_Iallgather(from, COUNT, MPI_INT, other, COUNT, MPI_INT, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Iscan(from, to, COUNT, MPI_INT, op, comm, &requests[0]);
    MPI_Ibcast(other, 1, MPI_INT, root, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void persistent(MPI_Comm comm)
{
    MPI_Request request;

    PERSISTENT(Alltoall)(from, COUNT, MPI_INT, to, COUNT, MPI_INT, comm, MPI_INFO_NULL, &request);
    for (int run = 0; run < 2; run++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static void run_all(MPI_Comm comm, MPI_Op op)
{
    int size;

    MPI_Comm_size(comm, &size);
    CHECK(size <= MOST, "at most %d ranks", MOST);
    blocking(comm, size - 1);
    in_flight(comm, size / 2, op);
    persistent(comm);
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    MPI_Op op;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op_create(first, 0, &op);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_set_name(half, "the odd\n# half");
    run_all(MPI_COMM_WORLD, op);
    run_all(half, op);
    MPI_Comm_free(&half);
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
