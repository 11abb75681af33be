/* Functions of MPI 4 with MPI_Count, blocking and not: each rank sends each other one as many as both ranks' numbers say. */
#include <mpi.h>
#include <stdio.h>

enum { RANKS = 8, MOST = 2 * RANKS * RANKS };

static MPI_Count counts[RANKS];
static MPI_Aint displs[RANKS];
static int out[MOST], in[MOST];

static int value(int from, int to, MPI_Count i)
{
    return from * 1000 + to * 100 + (int)i;
}

static int exchange(int rank, int ranks, int nonblocking)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Count next = 0;
    int wrong = 0;

    for (int i = 0; i < ranks; i++) {
        counts[i] = rank + i + 1;
        displs[i] = (MPI_Aint)next;
        for (MPI_Count j = 0; j < counts[i]; j++) {
            in[next] = -1;
            out[next++] = value(rank, i, j);
        }
    }
    if (nonblocking) {
        MPI_Ialltoallv_c(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD,
                         &request);
    } else {
        MPI_Alltoallv_c(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < ranks; i++) {
        for (MPI_Count j = 0; j < counts[i]; j++) {
            wrong += in[displs[i] + j] != value(i, rank, j);
        }
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0, all = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int run = 0; run < 6 && ranks <= RANKS; run++) {
        wrong += exchange(rank, ranks, run & 1);
    }
    MPI_Allreduce_c(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d wrong\n", all);
    }
    MPI_Finalize();
    return all != 0;
}
