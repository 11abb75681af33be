/*
 * Choices that measured times correct (coll_ibshift_expert correct=N). The cost model has been given wrong parameters, by which a
 * chain is the best broadcast; after some calls all ranks must have left it, though one of them is late in every call,
 * and every result must be right, whichever plan ran. Nonblocking calls come between, and keep the model's choice; a
 * communicator whose ranks never wait for each other keeps it too, and so does one where MPI_T asks for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum {
    COUNT = 48,
    CALLS = 22,      /* enough to judge one rival, not two */
    LATE = 60 * 1000 /* us: on the wire of the lane as long as several hops */
};

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

static double measured(MPI_Comm comm)
{
    double us = 0;

    read_variable("coll_ibshift_bcast_chosen_measured_us", MPI_T_PVAR_CLASS_LEVEL, comm, &us);
    return us;
}

static void call_often(MPI_Comm comm, int calls)
{
    for (int i = 1; i <= calls; i++) {
        broadcast(comm, i, true);
        MPI_Barrier(comm); /* here all agree */
    }
}

static int correct_late(int before)
{
    int after;

    for (int i = 1; i <= CALLS; i++) {
        if (rank == 2) {
            usleep(LATE);
        }
        broadcast(MPI_COMM_WORLD, i, true);
        if (i % 5 == 0) {
            broadcast(MPI_COMM_WORLD, i, false);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    broadcast(MPI_COMM_WORLD, CALLS + 1, true);
    after = chosen(MPI_COMM_WORLD);
    CHECK(after != before, "after %d calls all ranks still broadcast by algorithm %d", CALLS,
          before);
    CHECK(measured(MPI_COMM_WORLD) > 0, "the broadcast has no measured time");
    broadcast(MPI_COMM_WORLD, 0, false);
    CHECK(chosen(MPI_COMM_WORLD) == before, "a nonblocking call has a choice of blocking ones");
    return after;
}

/* The model's choice is asked for in the middle of a trial; nothing is tried then, but from the start again later. */
static void force(int before)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "asked");
    call_often(comm, CALLS / 2);
    parameter_set("coll_ibshift_bcast_algorithm", before);
    call_often(comm, CALLS);
    CHECK(chosen(comm) == before && !(measured(comm) > 0), "what MPI_T asks for is on trial");
    parameter_set("coll_ibshift_bcast_algorithm", 0);
    call_often(comm, CALLS);
    CHECK(chosen(comm) != before, "nothing is tried after MPI_T has asked for an algorithm");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    MPI_Comm loose;
    int provided, before, after;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &loose);
    broadcast(MPI_COMM_WORLD, 0, true);
    broadcast(loose, 0, true);
    before = chosen(MPI_COMM_WORLD);
    after = correct_late(before);
    for (int i = 1; i <= CALLS; i++) {
        broadcast(loose, i, true);
    }
    CHECK(chosen(loose) == before, "a choice changed where no rank waits for all others");
    MPI_Comm_free(&loose);
    force(before);
    if (rank == 0) {
        printf("corrected: algorithm %d in place of %d\n", after, before);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
