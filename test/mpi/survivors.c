/*
 * After an all-to-all of all ranks one of them is killed, and the others go on in a communicator of their own:
 *     survivors VICTIM BYTES
 * Rank 0 keeps what was found for all, and may make from it what the others follow (coll_ibshift_explain says so).
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static void exchange(MPI_Comm comm, int bytes)
{
    int rank, size;
    unsigned char *sent, *got;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    sent = malloc((size_t)bytes * (size_t)size);
    got = calloc((size_t)bytes, (size_t)size);
    CHECK(sent != NULL && got != NULL, "no memory");
    for (int i = 0; i < bytes * size; i++) {
        sent[i] = (unsigned char)(rank * 31 + i / bytes * 7 + i % bytes);
    }
    CHECK(MPI_Alltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, comm) == MPI_SUCCESS,
          "rank %d of %d: the all-to-all failed", rank, size);
    for (int i = 0; i < bytes * size; i++) {
        CHECK(got[i] == (unsigned char)(i / bytes * 31 + rank * 7 + i % bytes),
              "rank %d of %d: byte %d is wrong", rank, size, i);
    }
    free(sent);
    free(got);
}

/* Nobody leaves before all are done; MPI_Finalize would wait for the dead. */
static void leave(MPI_Comm comm)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int other = 1; other < size && rank == 0; other++) {
        MPI_Recv(NULL, 0, MPI_BYTE, other, 1, comm, MPI_STATUS_IGNORE);
    }
    for (int other = 1; other < size && rank == 0; other++) {
        MPI_Ssend(NULL, 0, MPI_BYTE, other, 2, comm);
    }
    if (rank != 0) {
        MPI_Ssend(NULL, 0, MPI_BYTE, 0, 1, comm);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, comm, MPI_STATUS_IGNORE);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    int rank, victim = argc == 3 ? atoi(argv[1]) : 0, bytes = argc == 3 ? atoi(argv[2]) : 0, there;
    long pid = getpid();
    MPI_Comm rest;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(victim > 0 && bytes > 0, "survivors VICTIM BYTES: rank 0 cannot be the victim");
    exchange(MPI_COMM_WORLD, bytes);
    MPI_Bcast(&pid, 1, MPI_LONG, victim, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank == victim ? MPI_UNDEFINED : 0, rank, &rest);
    while (rank == victim) { /* what it has sent may need it for a while */
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    MPI_Barrier(rest);
    if (rank == 0) {
        kill((pid_t)pid, SIGKILL);
    }
    exchange(rest, bytes);
    leave(rest);
}
