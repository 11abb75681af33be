/*
 * connections [MOST [CALLS [AGAIN]]]: every collective, AGAIN times over (0: the first CALLS), and how many
 * connections the rank with most has made after each. With MOST: the first CALLS of them make no more
 * than that, and after the others no rank has more, once those that are not used are taken down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { RANKS_MOST = 1024, SETTLE_ROUNDS = 1000 };

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

static MPI_T_pvar_handle open_variable(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;

    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS,
          "there is no variable %s", name);
    CHECK(MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count) == MPI_SUCCESS,
          "the variable %s cannot be bound", name);
    (void)MPI_T_pvar_start(session, handle);
    return handle;
}

static MPI_T_pvar_handle made, closed;

/* On the rank where it is most. */
static unsigned long long most_of(unsigned long long value)
{
    unsigned long long most;

    MPI_Allreduce(&value, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, comm);
    return most;
}

static unsigned long long read_variable(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    MPI_T_pvar_read(session, handle, &value);
    return value;
}

static unsigned long long most_now(void)
{
    return most_of(read_variable(made) - read_variable(closed));
}

/* The connections that are left once those that nobody uses have been taken down. */
static unsigned long long settle(unsigned long long most)
{
    unsigned long long now;

    for (int i = 0; (now = most_now()) > most && i < SETTLE_ROUNDS; i++) {
        usleep(20000);
    }
    return now;
}

int main(int argc, char **argv)
{
    unsigned long long most = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, all = 0;
    size_t few = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    size_t count = sizeof(calls) / sizeof(calls[0]);
    size_t again = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
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
    made = open_variable("coll_ibshift_connections");
    closed = open_variable("coll_ibshift_connections_closed");
    for (size_t i = 0; i < (again > 0 ? again * count : few); i++) {
        calls[i % count].run();
        all = most_of(read_variable(made));
        if (rank == 0) {
            printf("%d ranks, after %s: at most %llu connections made\n", size,
                   calls[i % count].name, all);
        }
        CHECK(most == 0 || i >= few || all <= most, "%s makes connection %llu on a rank",
              calls[i].name, all);
        if (most > 0) {
            unsigned long long left = settle(most);

            CHECK(left <= most, "%llu connections on a rank after %s, at most %llu are allowed",
                  left, calls[i % count].name, most);
        }
    }
    CHECK(most == 0 || all > 0, "no connection was made: are all ranks on one host?");
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
