/*
 * A point-to-point broadcast by rank 0, its sends never waited for there, and then our gather at
 * that root, while the others come late: root's messages must leave and be taken while it waits
 * inside the gather, or all wait for ever.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 20, COUNT = 1 << 18 /* above every eager limit: the sends need root's progress */ };

static void broadcast(int *data, MPI_Request *requests, int rank, int size)
{
    if (rank != 0) {
        MPI_Recv(data, COUNT, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Isend(data, COUNT, MPI_INT, i, 1, MPI_COMM_WORLD, &requests[i - 1]);
    }
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *data = malloc(COUNT * sizeof(int)), *all = calloc((size_t)size, sizeof(int));
    MPI_Request *requests = calloc((size_t)size, sizeof(MPI_Request));
    CHECK(data != NULL && all != NULL && requests != NULL, "out of memory");
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, rank == 0 ? round : 0xff, COUNT * sizeof(int));
        if (rank != 0) {
            nanosleep(&(struct timespec){.tv_nsec = rank * 1000 * 1000}, NULL);
        }
        broadcast(data, requests, rank, size);
        int mine = data[COUNT - 1] + rank;
        MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; rank == 0 && i < size; i++) {
            CHECK(all[i] == data[0] + i, "round %d: rank %d sent %d", round, i, all[i]);
        }
        if (rank == 0) {
            MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
        }
    }
    free(data);
    free(all);
    free(requests);
    MPI_Finalize();
    return 0;
}
