/*
 * MPI sessions (Open MPI 5.0 and later): several at a time, each with a communicator of its own, and
 * what is made from that; ended in any order:
 *     sessions ORDER [world|again]
 * ORDER: a number that says in which order; world: between MPI_Init and MPI_Finalize; again: and once more when all have ended,
 * where Open MPI itself may wait for ever (docs/upstream.md).
 */

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if OMPI_MAJOR_VERSION >= 5

enum { SESSIONS = 3, MOST = 20000 };

static int failed; /* no MPI_COMM_WORLD, no check_failed() */

static void need(bool is_so, const char *what, int rank)
{
    if (!is_so) {
        fprintf(stderr, "sessions: rank %d: %s\n", rank, what);
        failed++;
    }
}

static MPI_Comm make(MPI_Session session, int place)
{
    MPI_Group all, some;
    MPI_Comm comm = MPI_COMM_NULL;
    char tag[32];
    int size, range[3];

    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_size(all, &size);
    range[0] = place % 2 == 0 ? 0 : size - 1;
    range[1] = size - 1 - range[0];
    range[2] = place % 2 == 0 ? 1 : -1;
    MPI_Group_range_incl(all, 1, &range, &some);
    snprintf(tag, sizeof(tag), "ibshift %d", place);
    MPI_Comm_create_from_group(some, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    return comm;
}

/* Sums, and who sends what to whom, in all forms. */
static void check(MPI_Comm comm, int count)
{
    int *out = malloc(2 * sizeof(int) * MOST), *in = out + MOST, rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int form = FORM_COUNT - 1; form >= 0; form--) { /* blocking last: the others come before */
        struct run run = run_begin((enum form)form);

        while (run_next(&run)) {
            for (int i = 0; i < count; i++) {
                out[i] = rank + i + run.round;
                in[i] = -1;
            }
            RUN(&run, Allreduce, allreduce, out, in, count, MPI_INT, MPI_SUM, comm);
            for (int i = 0; i < count; i++) {
                need(in[i] == size * (size - 1) / 2 + size * (i + run.round), "a wrong sum", rank);
            }
        }
        run = run_begin((enum form)form);
        while (run_next(&run)) {
            for (int i = 0; i < size; i++) {
                out[i] = rank * 100 + i + run.round;
            }
            RUN(&run, Alltoall, alltoall, out, 1, MPI_INT, in, 1, MPI_INT, comm);
            for (int i = 0; i < size; i++) {
                need(in[i] == i * 100 + rank + run.round, "a wrong block", rank);
            }
        }
        run = run_begin((enum form)form);
        while (run_next(&run)) {
            out[0] = rank == size - 1 ? run.round : -1;
            RUN(&run, Bcast, bcast, out, 1, MPI_INT, size - 1, comm);
            need(out[0] == run.round, "a wrong word from the root", rank);
        }
    }
    free(out);
}

static void use(MPI_Comm comm)
{
    MPI_Comm half, copy;
    int rank;

    MPI_Comm_rank(comm, &rank);
    check(comm, 1);
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Comm_dup(comm, &copy);
    check(half, 10);
    check(copy, MOST);
    check(comm, MOST);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&half);
}

static void run(int order)
{
    MPI_Session sessions[SESSIONS];
    MPI_Comm comms[SESSIONS];

    for (int i = 0; i < SESSIONS; i++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &sessions[i]);
        comms[i] = make(sessions[i], i);
        use(comms[i]);
    }
    for (int left = SESSIONS; left > 0; left--) {
        int ends = order % left;

        order /= left;
        for (int i = 0; i < left; i++) {
            check(comms[i], 100);
        }
        MPI_Comm_free(&comms[ends]);
        MPI_Session_finalize(&sessions[ends]);
        comms[ends] = comms[left - 1];
        sessions[ends] = sessions[left - 1];
    }
}

int main(int argc, char **argv)
{
    int order = argc > 1 ? atoi(argv[1]) : 0;
    bool has_world = argc > 2 && strcmp(argv[2], "world") == 0;
    bool is_again = has_world || (argc > 2 && strcmp(argv[2], "again") == 0);

    if (has_world) {
        MPI_Init(&argc, &argv);
        check(MPI_COMM_WORLD, 10);
    }
    run(order);
    if (is_again) {
        run(order + 1);
    }
    if (has_world) {
        check(MPI_COMM_WORLD, 10);
        MPI_Finalize();
    }
    return failed > 0;
}

#else

int main(void)
{
    puts("this Open MPI has no sessions");
    return 77;
}

#endif
