/*
 * The same type signature described by different types on different ranks, and ranks that come
 * late: what an algorithm chosen or cut by the caller's types would get wrong. With an argument:
 * a broadcast and an allgather of more than 2^31 bytes.
 */

#include "check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 3000 };

static int rank, size;

static void check(const int *got, int count, int base, const char *what)
{
    for (int i = 0; i < count; i++) {
        CHECK(got[i] == base + i, "%s: element %d is %d, not %d", what, i, got[i], base + i);
    }
}

/* One element of N ints on even ranks, N elements of one int on odd ones. */
static void check_movement(MPI_Datatype whole, enum form form, int *in, int *out)
{
    MPI_Datatype type = rank % 2 == 0 ? whole : MPI_INT;
    int count = rank % 2 == 0 ? 1 : N;
    struct run run = run_begin(form);

    while (run_next(&run)) {
        for (int i = 0; i < N; i++) {
            out[i] = rank == 0 ? run.round * 7 + i : -1;
        }
        RUN(&run, Bcast, bcast, out, count, type, 0, MPI_COMM_WORLD);
        check(out, N, run.round * 7, "bcast");
    }
    run = run_begin(form);
    while (run_next(&run)) {
        for (int i = 0; i < N; i++) {
            out[i] = rank * 100000 + i;
        }
        RUN(&run, Allgather, allgather, out, count, type, in, N, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++) {
            check(in + (size_t)i * N, N, i * 100000, "allgather");
        }
    }
    run = run_begin(form);
    while (run_next(&run)) {
        memset(in, 0xff, (size_t)size * N * sizeof(int));
        RUN(&run, Gather, gather, out, N, MPI_INT, in, count, type, size - 1, MPI_COMM_WORLD);
        for (int i = 0; i < size && rank == size - 1; i++) {
            check(in + (size_t)i * N, N, i * 100000, "gather");
        }
    }
}

static void check_alltoall(MPI_Datatype whole, enum form form, int *in, int *out)
{
    struct run run = run_begin(form);
    bool odd = rank % 2;

    while (run_next(&run)) {
        for (int i = 0; i < size * N; i++) {
            out[i] = rank * 1000000 + i;
        }
        if (rank == run.round % size) {
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        }
        RUN(&run, Alltoall, alltoall, out, odd ? N : 1, odd ? MPI_INT : whole, in, odd ? 1 : N,
            odd ? whole : MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++) {
            check(in + (size_t)i * N, N, i * 1000000 + rank * N, "alltoall");
        }
    }
}

static void check_huge(void)
{
    enum { HUGE_COUNT = (1 << 28) + 5 }; /* of 8 bytes: just above 2^31 */
    uint64_t *data = malloc((size_t)HUGE_COUNT * sizeof(uint64_t) * 2), *half = data + HUGE_COUNT;

    CHECK(data != NULL, "no memory for 4 GiB");
    for (size_t i = 0; i < HUGE_COUNT; i++) {
        data[i] = rank == 0 ? i * 2654435761u : 0;
    }
    MPI_Bcast(data, HUGE_COUNT, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < HUGE_COUNT; i++) {
        CHECK(data[i] == i * 2654435761u, "bcast: element %zu is wrong", i);
        half[i] = i + (uint64_t)rank;
    }
    MPI_Allreduce(half, data, HUGE_COUNT, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (size_t i = 0; i < HUGE_COUNT; i++) {
        CHECK(data[i] == i + (uint64_t)size - 1, "allreduce: element %zu is wrong", i);
    }
    free(data);
}

int main(int argc, char **argv)
{
    MPI_Datatype whole;
    int *in, *out;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = malloc((size_t)size * N * sizeof(int));
    out = malloc((size_t)size * N * sizeof(int));
    CHECK(in != NULL && out != NULL, "no memory");
    MPI_Type_contiguous(N, MPI_INT, &whole);
    MPI_Type_commit(&whole);
    for (int form = 0; form < FORM_COUNT; form++) {
        check_movement(whole, (enum form)form, in, out);
        check_alltoall(whole, (enum form)form, in, out);
    }
    MPI_Type_free(&whole);
    free(in);
    free(out);
    if (argc > 1) {
        check_huge();
    }
    MPI_Finalize();
    return 0;
}
