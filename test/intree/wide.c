/* Functions of MPI 4 with MPI_Count, blocking and not: each rank sends each other one as many as both ranks' numbers say.
   With an argument: more elements than an int counts, 3 more than 2^31, of a byte each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static unsigned char byte_at(MPI_Count i)
{
    return (unsigned char)(i * 7 + (i >> 20) * 13);
}

static long differs(const unsigned char *bytes, MPI_Count count)
{
    long wrong = 0;

    for (MPI_Count i = 0; i < count; i++) {
        wrong += bytes[i] != byte_at(i);
    }
    return wrong;
}

/* From rank 0 to rank 1, and as many counts and places as there are ranks. */
static long pass_on(unsigned char *bytes, MPI_Count count, int rank)
{
    const MPI_Count to[2] = {0, rank == 0 ? count : 0}, from[2] = {rank == 1 ? count : 0, 0};
    const MPI_Aint places[2] = {0, 0};

    if (rank == 1) {
        memset(bytes, 0, (size_t)count);
    }
    MPI_Alltoallv_c(rank == 0 ? bytes : NULL, to, places, MPI_UINT8_T, rank == 1 ? bytes : NULL,
                    from, places, MPI_UINT8_T, MPI_COMM_WORLD);
    return differs(bytes, count);
}

static int huge(int rank)
{
    const MPI_Count count = ((MPI_Count)1 << 31) + 3;
    unsigned char *bytes = calloc((size_t)count, 1);
    long wrong = 0;

    if (bytes == NULL) {
        return 1;
    }
    for (MPI_Count i = 0; rank == 0 && i < count; i++) {
        bytes[i] = byte_at(i);
    }
    MPI_Bcast_c(bytes, count, MPI_UINT8_T, 0, MPI_COMM_WORLD);
    wrong += differs(bytes, count);
    for (MPI_Count i = 0; i < count; i++) {
        bytes[i] &= rank == 0 ? 0xf0 : 0x0f;
    }
    MPI_Allreduce_c(MPI_IN_PLACE, bytes, count, MPI_UINT8_T, MPI_BOR, MPI_COMM_WORLD);
    wrong += differs(bytes, count);
    wrong += pass_on(bytes, count, rank);
    free(bytes);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0, all = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1) {
        wrong += huge(rank);
    }
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
