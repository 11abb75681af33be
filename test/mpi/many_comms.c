/* N communicators (default 1,000) created, used and freed; as many as possible at a time first. */

#include "check.h"

#include <stdlib.h>

enum { AT_A_TIME = 50 };

int main(int argc, char **argv)
{
    int wanted, rank, size, sum;
    MPI_Comm comms[AT_A_TIME];

    MPI_Init(&argc, &argv);
    wanted = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int done = 0; done < wanted; done += AT_A_TIME) {
        for (int i = 0; i < AT_A_TIME; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        }
        for (int i = 0; i < AT_A_TIME; i++) {
            MPI_Request request;

            MPI_Barrier(comms[i]);
            MPI_Ibarrier(comms[i], &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
            CHECK(sum == size * (size - 1) / 2, "allreduce on communicator %d: %d", done + i, sum);
            MPI_Comm_free(&comms[i]);
        }
    }
    MPI_Finalize();
    return 0;
}
