#include "nbcbench.h"

#include <stdio.h>
#include <stdlib.h>

#include "sizes.h"

static bool run_size(struct options *o, const struct collective *c, MPI_Comm comm, size_t size)
{
    struct result result = {0};
    struct bench b;

    if (bench_open(&b, c, o, comm, size) != 0 ||
        (o->plans ? plans_measure(&b, o, &result) : measure(&b, &result)) != 0) {
        fprintf(stderr, "nbcbench: no memory for blocks of %zu bytes\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (b.rank == 0) {
        if (!o->plans) {
            report_row(&b, &result);
        }
        if (result.is_wrong) {
            fprintf(stderr, "nbcbench: WRONG DATA: %s, %d ranks, %zu bytes\n", c->name, b.ranks,
                    b.size);
        }
    }
    bench_close(&b);
    return !result.is_wrong;
}

static bool run_sizes(struct options *o, const struct collective *c, MPI_Comm comm)
{
    bool right = true;
    size_t last = 0;

    if (!c->sized) {
        return run_size(o, c, comm, 0);
    }
    for (int i = 0; i < o->size_count; i++) {
        size_t size = block_size(o, c, o->sizes[i]);

        if (sizes_vary(o, c)) {
            free(sizes_take(o->matrix, comm, o->sizes[i], &size));
        }
        right = (size == last || run_size(o, c, comm, o->sizes[i])) && right;
        last = size;
    }
    return right;
}

static MPI_Comm make_grid(const struct options *o, MPI_Comm comm)
{
    int sides[GRID_MOST] = {0}, are_periodic[GRID_MOST], ranks;
    MPI_Comm grid;

    for (int i = 0; i < o->grid; i++) {
        are_periodic[i] = 1;
    }
    MPI_Comm_size(comm, &ranks);
    MPI_Dims_create(ranks, o->grid, sides);
    MPI_Cart_create(comm, o->grid, sides, are_periodic, 0, &grid);
    return grid;
}

static bool run_collectives(struct options *o, MPI_Comm comm)
{
    MPI_Comm grid = make_grid(o, comm);
    const struct collective *c;
    bool right = true;

    for (size_t i = 0; (c = collective_at(i)) != NULL; i++) {
        if (options_want(o, c)) {
            right = run_sizes(o, c, collective_is_of_neighbors(c) ? grid : comm) && right;
        }
    }
    MPI_Comm_free(&grid);
    return right;
}

static int run(struct options *o, int rank)
{
    int wrong = 0;

    for (int ranks = o->ranks_min;; ranks = ranks * 2 < o->ranks_max ? ranks * 2 : o->ranks_max) {
        MPI_Comm comm;

        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
        if (comm != MPI_COMM_NULL) {
            wrong |= !run_collectives(o, comm);
            MPI_Comm_free(&comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (ranks >= o->ranks_max) {
            return wrong;
        }
    }
}

int main(int argc, char **argv)
{
    struct options options;
    int rank, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = options_parse(argc, argv, rank, &options);
    if (status != 0) {
        MPI_Finalize();
        return status == 1 ? 0 : 2;
    }
    if (rank == 0 && report_open(&options) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    status = run(&options, rank);
    if (rank == 0 && report_close() != 0 && status == 0) {
        status = 2;
    }
    MPI_Finalize();
    return status;
}
