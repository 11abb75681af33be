/* Neighborhood collectives on Cartesian, graph and distributed graph communicators. */

#include "check.h"

#include <stddef.h>

enum { MOST = 8 };

struct neighbors {
    const char *name;
    int in[MOST], out[MOST], ins, outs;
};

static int value(int from, int to, int round)
{
    return from * 10007 + to * 101 + round;
}

static void check_alltoall(MPI_Comm comm, enum form form, const struct neighbors *n, int rank)
{
    struct run run = run_begin(form);
    int send[MOST], recv[MOST];

    while (run_next(&run)) {
        for (int i = 0; i < n->outs; i++) {
            send[i] = value(rank, n->out[i], run.round);
        }
        for (int i = 0; i < n->ins; i++) {
            recv[i] = -1;
        }
        RUN(&run, Neighbor_alltoall, neighbor_alltoall, send, 1, MPI_INT, recv, 1, MPI_INT, comm);
        for (int i = 0; i < n->ins; i++) {
            int expected = n->in[i] == MPI_PROC_NULL ? -1 : value(n->in[i], rank, run.round);
            CHECK(recv[i] == expected, "%s neighbor_alltoall on a %s: %d, not %d", form_names[form],
                  n->name, recv[i], expected);
        }
    }
}

static void check_allgather(MPI_Comm comm, enum form form, const struct neighbors *n, int rank)
{
    struct run run = run_begin(form);
    int recv[MOST];

    while (run_next(&run)) {
        int mine = value(rank, 0, run.round);
        RUN(&run, Neighbor_allgather, neighbor_allgather, &mine, 1, MPI_INT, recv, 1, MPI_INT,
            comm);
        for (int i = 0; i < n->ins; i++) {
            CHECK(n->in[i] == MPI_PROC_NULL || recv[i] == value(n->in[i], 0, run.round),
                  "%s neighbor_allgather on a %s", form_names[form], n->name);
        }
    }
}

static void check_vectors(MPI_Comm comm, enum form form, const struct neighbors *n, int rank)
{
    struct run run = run_begin(form);
    int send[MOST], recv[MOST], ones[MOST], at[MOST], mine;
    MPI_Aint bytes[MOST];
    MPI_Datatype types[MOST];

    for (int i = 0; i < MOST; i++) {
        ones[i] = 1;
        at[i] = i;
        bytes[i] = i * (MPI_Aint)sizeof(int);
        types[i] = MPI_INT;
        send[i] = i < n->outs ? value(rank, n->out[i], 0) : 0;
        recv[i] = -1;
    }
    while (run_next(&run)) {
        RUN(&run, Neighbor_alltoallv, neighbor_alltoallv, send, ones, at, MPI_INT, recv, ones, at,
            MPI_INT, comm);
    }
    for (int i = 0; i < n->ins; i++) {
        CHECK(n->in[i] == MPI_PROC_NULL || recv[i] == value(n->in[i], rank, 0),
              "%s neighbor_alltoallv on a %s", form_names[form], n->name);
        recv[i] = -1;
    }
    run = run_begin(form);
    while (run_next(&run)) {
        RUN(&run, Neighbor_alltoallw, neighbor_alltoallw, send, ones, bytes, types, recv, ones,
            bytes, types, comm);
    }
    for (int i = 0; i < n->ins; i++) {
        CHECK(n->in[i] == MPI_PROC_NULL || recv[i] == value(n->in[i], rank, 0),
              "%s neighbor_alltoallw on a %s", form_names[form], n->name);
        recv[i] = -1;
    }
    mine = value(rank, 0, 0);
    run = run_begin(form);
    while (run_next(&run)) {
        RUN(&run, Neighbor_allgatherv, neighbor_allgatherv, &mine, 1, MPI_INT, recv, ones, at,
            MPI_INT, comm);
    }
    for (int i = 0; i < n->ins; i++) {
        CHECK(n->in[i] == MPI_PROC_NULL || recv[i] == value(n->in[i], 0, 0),
              "%s neighbor_allgatherv on a %s", form_names[form], n->name);
    }
}

static void check_neighbors(MPI_Comm comm, const struct neighbors *n)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    for (int form = 0; form < FORM_COUNT; form++) {
        check_alltoall(comm, (enum form)form, n, rank);
        check_allgather(comm, (enum form)form, n, rank);
        check_vectors(comm, (enum form)form, n, rank);
    }
}

static void check_cart(int size, int periodic)
{
    struct neighbors n = {.name = periodic ? "torus" : "mesh", .ins = 4, .outs = 4};
    int dims[2] = {0, 0}, periods[2] = {periodic, periodic};
    MPI_Comm comm;

    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
    for (int d = 0; d < 2; d++) {
        MPI_Cart_shift(comm, d, 1, &n.in[2 * d], &n.in[2 * d + 1]);
    }
    for (int i = 0; i < 4; i++) {
        n.out[i] = n.in[i];
    }
    check_neighbors(comm, &n);
    MPI_Comm_free(&comm);
}

/* A star around rank 0, as a graph and as a distributed graph. */
static void check_star(int rank, int size)
{
    struct neighbors n = {.name = "graph"};
    int index[MOST], edges[2 * MOST], weights[MOST] = {0}, leaves = size - 1, top = 0;
    MPI_Comm comm;

    if (size > MOST || size < 2) {
        return;
    }
    for (int i = 1; i < size; i++) {
        edges[top++] = i;
    }
    index[0] = top;
    for (int i = 1; i < size; i++) {
        edges[top++] = 0;
        index[i] = top;
    }
    n.ins = n.outs = rank == 0 ? leaves : 1;
    for (int i = 0; i < n.ins; i++) {
        n.in[i] = n.out[i] = rank == 0 ? i + 1 : 0;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    check_neighbors(comm, &n);
    MPI_Comm_free(&comm);

    n.name = "distributed graph";
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n.ins, n.in, weights, n.outs, n.out, weights,
                                   MPI_INFO_NULL, 0, &comm);
    check_neighbors(comm, &n);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_cart(size, 0);
    check_cart(size, 1);
    check_star(rank, size);
    MPI_Finalize();
    return 0;
}
