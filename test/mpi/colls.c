#include "colls.h"

#include <time.h>

/* One clock for all ranks of this host; MPI_Wtime() counts from each process's own start. */
static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Nobody leaves before the last one came; one rank in turn comes late. */
static void check_barrier(MPI_Comm comm, const struct how *how)
{
    struct run run = run_begin(how->form);
    double entered, left, last, first;
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    while (run_next(&run)) {
        if (rank == (how->root + run.round) % size) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        }
        entered = seconds();
        RUN(&run, Barrier, barrier, comm);
        left = seconds();
        MPI_Allreduce(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
        MPI_Allreduce(&left, &first, 1, MPI_DOUBLE, MPI_MIN, comm);
        CHECK(last <= first, "%s barrier: a rank left %g s before the last one came",
              form_names[how->form], last - first);
    }
}

void check_collectives(MPI_Comm comm, const struct how *how)
{
    /* The same salts from here on: the ranks may have done different things before. */
    agree_on_salt(comm);
    check_barrier(comm, how);
    check_data_movement(comm, how);
    check_vectors(comm, how);
    check_reductions(comm, how);
}

void check_communicator(MPI_Comm comm)
{
    struct layout layout = layout_create(LAYOUT_INT);
    int size;

    MPI_Comm_size(comm, &size);
    for (int form = 0; form < FORM_COUNT; form++) {
        struct how how = {.form = (enum form)form,
                          .layout = &layout,
                          .count = 3,
                          .root = size - 1,
                          .op = MPI_SUM};
        check_collectives(comm, &how);
    }
    layout_free(&layout);
}
