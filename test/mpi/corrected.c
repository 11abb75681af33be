/*
 * Choices that measured times correct (coll_ibshift_correct). The cost model has been given wrong parameters, by which a
 * chain is the best broadcast; after some calls all ranks must have left it, though one of them is late now and then, and
 * every result must be right, whichever plan ran. Nonblocking calls come between, and a communicator whose ranks never
 * wait for each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 48, CALLS = 22 };

static int rank, ranks;

static void read_variable(const char *name, int class, MPI_Comm comm, void *value)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int index, count;

    MPI_T_pvar_session_create(&session);
    CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS, "there is no %s", name);
    CHECK(MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count) == MPI_SUCCESS &&
              MPI_T_pvar_read(session, handle, value) == MPI_SUCCESS,
          "%s cannot be read", name);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
}

/* The same on all ranks, or it ends here. */
static int chosen(MPI_Comm comm)
{
    int number, least, most;

    read_variable("coll_ibshift_bcast_chosen", MPI_T_PVAR_CLASS_STATE, comm, &number);
    MPI_Allreduce(&number, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&number, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == most, "the ranks broadcast by algorithms %d to %d", least, most);
    return number;
}

static void broadcast(MPI_Comm comm, int salt, bool is_blocking)
{
    int data[COUNT], root = is_blocking ? 0 : salt % ranks;
    MPI_Request request;

    for (int i = 0; i < COUNT; i++) {
        data[i] = rank == root ? salt * COUNT + i : -1;
    }
    if (is_blocking) {
        MPI_Bcast(data, COUNT, MPI_INT, root, comm);
    } else {
        MPI_Ibcast(data, COUNT, MPI_INT, root, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(data[i] == salt * COUNT + i, "element %d of broadcast %d is %d", i, salt, data[i]);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm loose;
    double us = 0;
    int provided, before, after;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &loose);
    broadcast(MPI_COMM_WORLD, 0, true);
    broadcast(loose, 0, true);
    before = chosen(MPI_COMM_WORLD);
    for (int i = 1; i <= CALLS; i++) {
        if (i % 7 == 0 && rank == 2) {
            usleep(5000);
        }
        broadcast(MPI_COMM_WORLD, i, true);
        if (i % 5 == 0) {
            broadcast(MPI_COMM_WORLD, i, false);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* here all agree */
    }
    for (int i = 1; i <= CALLS; i++) {
        broadcast(loose, i, true);
    }
    after = chosen(MPI_COMM_WORLD);
    CHECK(after != before, "after %d calls all ranks still broadcast by algorithm %d", CALLS,
          before);
    read_variable("coll_ibshift_bcast_chosen_measured_us", MPI_T_PVAR_CLASS_LEVEL, MPI_COMM_WORLD,
                  &us);
    CHECK(us > 0, "the broadcast has no measured time");
    CHECK(chosen(loose) == before, "a choice changed where no rank waits for all others");
    MPI_Comm_free(&loose);
    if (rank == 0) {
        printf("corrected: algorithm %d in place of %d\n", after, before);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
