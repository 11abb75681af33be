/* Collectives on an intercommunicator, in all forms. */

#include "check.h"

#include <stdlib.h>

static MPI_Comm inter;
static int rank, size, remote, color;

/* The group of color 0 has root 0 send to the other one. */
static int root_argument(void)
{
    return color == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

static void check_bcast_and_reduce(enum form form)
{
    struct run run = run_begin(form);
    int value, sum, root = root_argument();

    while (run_next(&run)) {
        value = root == MPI_ROOT ? 17 + run.round : -1;
        RUN(&run, Bcast, bcast, &value, 1, MPI_INT, root, inter);
        CHECK(color == 0 || value == 17 + run.round, "%s bcast: %d", form_names[form], value);
    }
    run = run_begin(form);
    while (run_next(&run)) {
        value = rank + run.round;
        sum = -1;
        RUN(&run, Reduce, reduce, &value, &sum, 1, MPI_INT, MPI_SUM, root, inter);
        if (root == MPI_ROOT) {
            int expected = remote * (remote - 1) / 2 + remote * run.round;
            CHECK(sum == expected, "%s reduce: %d, not %d", form_names[form], sum, expected);
        }
    }
}

static void check_all(enum form form, int *in, int *out)
{
    struct run run = run_begin(form);
    int sum;

    while (run_next(&run)) {
        int mine = 100 * color + rank;
        RUN(&run, Allgather, allgather, &mine, 1, MPI_INT, in, 1, MPI_INT, inter);
        for (int i = 0; i < remote; i++) {
            CHECK(in[i] == 100 * (1 - color) + i, "%s allgather", form_names[form]);
        }
    }
    run = run_begin(form);
    while (run_next(&run)) {
        for (int i = 0; i < remote; i++) {
            out[i] = 10000 * color + 100 * rank + i;
        }
        RUN(&run, Alltoall, alltoall, out, 1, MPI_INT, in, 1, MPI_INT, inter);
        for (int i = 0; i < remote; i++) {
            CHECK(in[i] == 10000 * (1 - color) + 100 * i + rank, "%s alltoall", form_names[form]);
        }
    }
    run = run_begin(form);
    while (run_next(&run)) {
        sum = 0;
        RUN(&run, Allreduce, allreduce, &size, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK(sum == remote * remote, "%s allreduce: %d", form_names[form], sum);
    }
    run = run_begin(form);
    while (run_next(&run)) {
        RUN(&run, Barrier, barrier, inter);
    }
}

static void check_scatter(enum form form, int *in, int *out)
{
    struct run run = run_begin(form);
    int root = root_argument(), got;

    while (run_next(&run)) {
        for (int i = 0; i < remote; i++) {
            out[i] = 7 * i + run.round;
        }
        got = -1;
        RUN(&run, Scatter, scatter, out, 1, MPI_INT, &got, 1, MPI_INT, root, inter);
        CHECK(color == 0 || got == 7 * rank + run.round, "%s scatter: %d", form_names[form], got);
    }
    run = run_begin(form);
    while (run_next(&run)) {
        got = 3 * rank;
        RUN(&run, Gather, gather, &got, 1, MPI_INT, in, 1, MPI_INT, root, inter);
        for (int i = 0; i < remote && root == MPI_ROOT; i++) {
            CHECK(in[i] == 3 * i, "%s gather: %d", form_names[form], in[i]);
        }
    }
}

/* Groups of different sizes: color 0 has the ranks below first. */
static void check_split(int world_rank, int first)
{
    MPI_Comm half;
    int *in, *out;

    color = world_rank >= first;
    MPI_Comm_split(MPI_COMM_WORLD, color, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, color == 0 ? first : 0, 3, &inter);
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    in = calloc((size_t)remote, sizeof(int));
    out = calloc((size_t)remote, sizeof(int));
    CHECK(in != NULL && out != NULL, "no memory");
    for (int form = 0; form < FORM_COUNT; form++) {
        check_bcast_and_reduce((enum form)form);
        check_all((enum form)form, in, out);
        check_scatter((enum form)form, in, out);
    }
    free(in);
    free(out);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    int world_rank, world_size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    CHECK(world_size >= 2, "needs at least 2 ranks");
    check_split(world_rank, 1);
    check_split(world_rank, world_size - 1);
    MPI_Finalize();
    return 0;
}
