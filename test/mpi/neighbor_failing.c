/*
 * Neighborhood collectives, and all-to-alls, in which something is wrong: each rank that lives gets an MPI error, in time.
 *     neighbor_failing unlike BYTES   on a ring, rank 1 awaits one byte more from rank 0 than the BYTES that that sends
 *     neighbor_failing empty BYTES    in an alltoallv, rank 0 sends rank 1 so many, which awaits none; -BYTES: the other way round
 *     neighbor_failing empty_start BYTES   the same in a persistent one, which is started again and again
 *     neighbor_failing twice BYTES    a persistent alltoallv is started, and started again before it has ended
 *     neighbor_failing sums FORM      in an alltoallv, rank 0 has 2^64 bytes for the others, and so for all 0 where nobody looks
 *     neighbor_failing killed FORM    the last rank of a ring kills itself in the middle of many calls
 *     neighbor_failing graph -        in a graph, rank 0 has a neighbour that knows nothing of it
 *     neighbor_failing distributed -  each rank awaits the next one, which sends to the one behind it
 *     neighbor_failing in_place -     MPI_IN_PLACE, which these collectives do not take, on one rank
 * FORM: blocking, nonblocking, persistent.
 */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE = 60, CALLS = 100000, BYTES = 20000 };

static int rank, size;
static char send[2 * (BYTES + 1)], recv[2 * (BYTES + 1)];

static void hangs(int signal)
{
    static const char text[] = "a rank hangs\n";

    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(1);
}

static MPI_Comm make_ring(void)
{
    int dims[1] = {size}, periods[1] = {1};
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

/* Of another rank's error it hears in a later call. */
static int unlike(int bytes)
{
    int back = bytes == 0 ? 8 : bytes; /* downwards, where all is well */
    int scounts[2] = {back, bytes}, rcounts[2] = {bytes + (rank == 1), back},
        at[2] = {0, BYTES + 1};
    MPI_Comm comm = make_ring();
    int rc = MPI_SUCCESS;

    CHECK(bytes <= BYTES, "at most %d bytes", BYTES);
    for (int i = 0; i < CALLS && rc == MPI_SUCCESS; i++) {
        rc = MPI_Neighbor_alltoallv(send, scounts, at, MPI_BYTE, recv, rcounts, at, MPI_BYTE, comm);
    }
    return rc;
}

static int start(MPI_Request *request)
{
    int rc = MPI_Start(request);

    return rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

/* All others know of it when the connection of the two has ended. */
static int empty(int bytes, bool is_persistent)
{
    int scounts[64], rcounts[64], at[64] = {0}, rc = MPI_SUCCESS;
    MPI_Request request;
    MPI_Comm comm;

    for (int i = 0; i < size; i++) {
        scounts[i] = rcounts[i] = 8;
        at[i] = 0;
    }
    if (rank == 0) {
        scounts[1] = bytes > 0 ? bytes : 0;
    } else if (rank == 1) {
        rcounts[0] = bytes < 0 ? -bytes : 0;
        at[0] = 8 * size;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (is_persistent) {
        PERSISTENT(Alltoallv)
        (send, scounts, at, MPI_BYTE, recv, rcounts, at, MPI_BYTE, comm, MPI_INFO_NULL, &request);
    }
    for (int i = 0; i < CALLS && rc == MPI_SUCCESS; i++) {
        rc = is_persistent
                 ? start(&request)
                 : MPI_Alltoallv(send, scounts, at, MPI_BYTE, recv, rcounts, at, MPI_BYTE, comm);
    }
    return rc;
}

static int call(enum form form, MPI_Comm comm, MPI_Request *request)
{
    int rc = MPI_SUCCESS;

    switch (form) {
    case FORM_BLOCKING:
        return MPI_Neighbor_alltoall(send, BYTES, MPI_BYTE, recv, BYTES, MPI_BYTE, comm);
    case FORM_NONBLOCKING:
        rc = MPI_Ineighbor_alltoall(send, BYTES, MPI_BYTE, recv, BYTES, MPI_BYTE, comm, request);
        break;
    default:
        return start(request);
    }
    return rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

static int twice(int bytes)
{
    int counts[64], at[64] = {0}, rc;
    MPI_Request request;

    for (int i = 0; i < size; i++) {
        counts[i] = bytes;
    }
    PERSISTENT(Alltoallv)
    (send, counts, at, MPI_BYTE, recv, counts, at, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
     &request);
    for (int turn = 0; turn < 3; turn++) {
        CHECK(MPI_Start(&request) == MPI_SUCCESS, "turn %d: the first start", turn);
        rc = MPI_Start(&request);
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "turn %d: the wait", turn);
    }
    return rc == MPI_ERR_REQUEST ? rc : MPI_SUCCESS;
}

static int sums(const char *form)
{
    int counts[64], at[64] = {0}, rc = MPI_SUCCESS;
    MPI_Datatype many, most;
    MPI_Request request;

    MPI_Type_contiguous(1 << 30, MPI_BYTE, &many);
    MPI_Type_contiguous(16, many, &most);
    MPI_Type_commit(&most);
    for (int i = 0; i < size; i++) {
        counts[i] = rank == 0 ? 1 << 30 : 8;
    }
    for (int i = 0; i < 2 && rc == MPI_SUCCESS; i++) {
        MPI_Datatype type = rank == 0 ? most : MPI_BYTE;

        if (strcmp(form, form_names[FORM_BLOCKING]) == 0) {
            rc = MPI_Alltoallv(send, counts, at, type, recv, counts, at, type, MPI_COMM_WORLD);
        } else {
            rc = MPI_Ialltoallv(send, counts, at, type, recv, counts, at, type, MPI_COMM_WORLD,
                                &request);
            rc = rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
        }
    }
    return rank != 0 || rc == MPI_ERR_COUNT ? rc : MPI_SUCCESS;
}

static int killed(const char *name)
{
    MPI_Comm comm = make_ring();
    MPI_Request request = MPI_REQUEST_NULL;
    enum form form = FORM_BLOCKING;
    int rc = MPI_SUCCESS;

    while (form < FORM_PERSISTENT && strcmp(form_names[form], name) != 0) {
        form++;
    }
    if (form == FORM_PERSISTENT) {
        PERSISTENT(Neighbor_alltoall)
        (send, BYTES, MPI_BYTE, recv, BYTES, MPI_BYTE, comm, MPI_INFO_NULL, &request);
    }
    for (int i = 0; i < CALLS && rc == MPI_SUCCESS; i++) {
        if (rank == size - 1 && i == 20) {
            MPI_Ineighbor_alltoall(send, BYTES, MPI_BYTE, recv, BYTES, MPI_BYTE, comm, &request);
            raise(SIGKILL);
        }
        rc = call(form, comm, &request);
    }
    return rc;
}

static int graph(void)
{
    int index[64], edges[1] = {1}, rc = MPI_SUCCESS;
    MPI_Comm comm;

    for (int i = 0; i < size; i++) {
        index[i] = 1;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < CALLS && rc == MPI_SUCCESS && rank == 0; i++) {
        rc = MPI_Neighbor_allgather(send, 1, MPI_BYTE, recv, 1, MPI_BYTE, comm);
    }
    return rank == 0 ? rc : MPI_ERR_TOPOLOGY;
}

static int distributed(void)
{
    int next = (rank + 1) % size;
    MPI_Comm comm;

    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &next, MPI_UNWEIGHTED, 1, &next,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return MPI_Neighbor_allgather(send, 1, MPI_BYTE, recv, 1, MPI_BYTE, comm);
}

static int in_place(void)
{
    MPI_Comm comm = make_ring();
    int rc = MPI_SUCCESS;

    for (int i = 0; i < CALLS && rc == MPI_SUCCESS; i++) {
        rc = MPI_Neighbor_alltoall(rank == 0 ? MPI_IN_PLACE : send, 1, MPI_BYTE, recv, 1, MPI_BYTE,
                                   comm);
    }
    return rc;
}

int main(int argc, char **argv)
{
    const char *what = argc == 3 ? argv[1] : "";
    int rc;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 3 && size >= 3 && size <= 64, "3 to 64 ranks, two arguments");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* of requests, too */
    signal(SIGALRM, hangs);
    alarm(PATIENCE);
    rc = strcmp(what, "unlike") == 0        ? unlike(atoi(argv[2]))
         : strcmp(what, "empty") == 0       ? empty(atoi(argv[2]), false)
         : strcmp(what, "empty_start") == 0 ? empty(atoi(argv[2]), true)
         : strcmp(what, "twice") == 0       ? twice(atoi(argv[2]))
         : strcmp(what, "sums") == 0        ? sums(argv[2])
         : strcmp(what, "killed") == 0      ? killed(argv[2])
         : strcmp(what, "graph") == 0       ? graph()
         : strcmp(what, "distributed") == 0 ? distributed()
                                            : in_place();
    CHECK(rc != MPI_SUCCESS, "%s: no error", what);
    fprintf(stderr, "rank %d has an error\n", rank);
    fflush(NULL);
    sleep(5); /* until the others have theirs: who ends early looks as if it had died */
    _exit(0);
}
