/*
 * connections [MOST [CALLS]]: every collective once, or the first CALLS of them, and how many
 * connections the rank with most has after each. With MOST: there are never more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { RANKS_MOST = 1024 };

static int from[RANKS_MOST], to[RANKS_MOST], counts[RANKS_MOST], places[RANKS_MOST];
static MPI_Datatype types[RANKS_MOST];
static MPI_Comm comm;

static void barrier(void)
{
    MPI_Barrier(comm);
}

static void bcast(void)
{
    MPI_Bcast(from, 1, MPI_INT, 1, comm);
}

static void gather(void)
{
    MPI_Gather(from, 1, MPI_INT, to, 1, MPI_INT, 1, comm);
}

static void scatter(void)
{
    MPI_Scatter(from, 1, MPI_INT, to, 1, MPI_INT, 1, comm);
}

static void gatherv(void)
{
    MPI_Gatherv(from, 1, MPI_INT, to, counts, places, MPI_INT, 1, comm);
}

static void scatterv(void)
{
    MPI_Scatterv(from, counts, places, MPI_INT, to, 1, MPI_INT, 1, comm);
}

static void allgather(void)
{
    MPI_Allgather(from, 1, MPI_INT, to, 1, MPI_INT, comm);
}

static void allgatherv(void)
{
    MPI_Allgatherv(from, 1, MPI_INT, to, counts, places, MPI_INT, comm);
}

static void alltoall(void)
{
    MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
}

static void alltoallv(void)
{
    MPI_Alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, comm);
}

static void alltoallw(void)
{
    int size;

    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) { /* in bytes here */
        places[i] = i * (int)sizeof(int);
    }
    MPI_Alltoallw(from, counts, places, types, to, counts, places, types, comm);
}

static void reduce(void)
{
    MPI_Reduce(from, to, 1, MPI_INT, MPI_SUM, 1, comm);
}

static void allreduce(void)
{
    MPI_Allreduce(from, to, 1, MPI_INT, MPI_SUM, comm);
}

static void reduce_scatter(void)
{
    MPI_Reduce_scatter(from, to, counts, MPI_INT, MPI_SUM, comm);
}

static void reduce_scatter_block(void)
{
    MPI_Reduce_scatter_block(from, to, 1, MPI_INT, MPI_SUM, comm);
}

static void scan(void)
{
    MPI_Scan(from, to, 1, MPI_INT, MPI_SUM, comm);
}

static void exscan(void)
{
    MPI_Exscan(from, to, 1, MPI_INT, MPI_SUM, comm);
}

static const struct {
    const char *name;
    void (*run)(void);
} calls[] = {
    {"barrier", barrier},
    {"bcast", bcast},
    {"gather", gather},
    {"scatter", scatter},
    {"allgather", allgather},
    {"allgatherv", allgatherv},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"reduce_scatter", reduce_scatter},
    {"reduce_scatter_block", reduce_scatter_block},
    {"alltoall", alltoall},
    {"scan", scan},
    {"exscan", exscan},
    {"gatherv", gatherv},
    {"scatterv", scatterv},
    {"alltoallv", alltoallv},
    {"alltoallw", alltoallw},
};

static MPI_T_pvar_session session;

static MPI_T_pvar_handle connections(void)
{
    MPI_T_pvar_handle handle;
    int index, count;

    CHECK(MPI_T_pvar_get_index("coll_ibshift_connections", MPI_T_PVAR_CLASS_COUNTER, &index) ==
              MPI_SUCCESS,
          "there is no variable of connections");
    CHECK(MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count) == MPI_SUCCESS,
          "the variable of connections cannot be bound");
    (void)MPI_T_pvar_start(session, handle);
    return handle;
}

static unsigned long long made(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    MPI_T_pvar_read(session, handle, &value);
    return value;
}

int main(int argc, char **argv)
{
    unsigned long long most = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, now, all = 0;
    size_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : sizeof(calls) / sizeof(calls[0]);
    MPI_T_pvar_handle handle;
    int rank, size, level;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK(size <= RANKS_MOST, "at most %d ranks", RANKS_MOST);
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        places[i] = i;
        types[i] = MPI_INT;
    }
    handle = connections();
    for (size_t i = 0; i < count && i < sizeof(calls) / sizeof(calls[0]); i++) {
        calls[i].run();
        now = made(handle);
        MPI_Allreduce(&now, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, comm);
        if (rank == 0) {
            printf("%d ranks, after %s: at most %llu connections a rank\n", size, calls[i].name,
                   all);
        }
        CHECK(most == 0 || all <= most, "%llu connections on a rank, at most %llu are allowed", all,
              most);
    }
    CHECK(most == 0 || all > 0, "no connection was made: are all ranks on one host?");
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
