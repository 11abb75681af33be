/*
 * Allreduce and reduce_scatter_block of vectors beyond the eager limit have their scratch at the same
 * places, for which grants stand. Here all changes that the places could depend on: counts, more of
 * them than are remembered, types, operators, parameters, communicators, other collectives and
 * nonblocking calls between, ranks that come late. Every result is compared with what it must be.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 40000, ROUNDS = 60, COMMS = 6 };

static int from[MOST], to[MOST], other[MOST];
static int rank, ranks;

static int value(int of, int index, int salt)
{
    return of * 7 + index % 1013 + salt;
}

static void allreduce(MPI_Comm comm, int n, int salt, MPI_Op op)
{
    for (int i = 0; i < n; i++) {
        from[i] = value(rank, i, salt);
    }
    MPI_Allreduce(from, to, n, MPI_INT, op, comm);
    for (int i = 0; i < n; i++) {
        int sum = ranks * (i % 1013 + salt) + 7 * ranks * (ranks - 1) / 2;
        int must = op == MPI_SUM ? sum : value(op == MPI_MAX ? ranks - 1 : 0, i, salt);
        CHECK(to[i] == must, "allreduce of %d: element %d is %d, not %d", n, i, to[i], must);
    }
}

static void reduce_scatter_block(MPI_Comm comm, int n, int salt)
{
    for (int i = 0; i < n * ranks; i++) {
        from[i] = value(rank, i, salt);
    }
    MPI_Reduce_scatter_block(from, to, n, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < n; i++) {
        int index = rank * n + i;
        int must = ranks * (index % 1013 + salt) + 7 * ranks * (ranks - 1) / 2;
        CHECK(to[i] == must, "reduce_scatter_block of %d: element %d is %d, not %d", n, i, to[i],
              must);
    }
}

/* Takes the right operand, of two that the order makes different. */
static void last(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static void others(MPI_Comm comm, int salt)
{
    MPI_Request request;
    MPI_Op right;
    int n = 6000 + salt % 3;

    MPI_Iallreduce(other, other + MOST / 2, n, MPI_INT, MPI_SUM, comm, &request);
    allreduce(comm, n, salt, MPI_MIN);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Reduce(from, to, n, MPI_INT, MPI_SUM, salt % ranks, comm);
    MPI_Op_create(last, 0, &right);
    for (int i = 0; i < n; i++) {
        from[i] = value(rank, i, salt);
    }
    MPI_Allreduce(from, to, n, MPI_INT, right, comm);
    MPI_Op_free(&right);
    CHECK(to[n - 1] == value(ranks - 1, n - 1, salt), "the last operand is %d", to[n - 1]);
}

/* Of as many bytes of data, with a gap in each element and without one. */
static void gaps(MPI_Comm comm)
{
    enum { PAIRS = 4096, NUMBERS = 3072 };
    static struct {
        double value;
        int at;
    } pair[PAIRS], most[PAIRS];
    static double number[NUMBERS][2], sum[NUMBERS][2];

    for (int run = 0; run < 8; run++) {
        for (int i = 0; i < PAIRS; i++) {
            pair[i].value = value(rank, i, run);
            pair[i].at = rank;
        }
        for (int i = 0; i < NUMBERS; i++) {
            number[i][0] = i + run;
            number[i][1] = rank;
        }
        if (run / 2 % 2 == 0) {
            MPI_Allreduce(pair, most, PAIRS, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
            CHECK(most[PAIRS - 1].value == value(ranks - 1, PAIRS - 1, run) &&
                      most[PAIRS - 1].at == ranks - 1,
                  "the most is %f at %d", most[PAIRS - 1].value, most[PAIRS - 1].at);
        } else {
            MPI_Allreduce(number, sum, NUMBERS, MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm);
            CHECK(sum[NUMBERS - 1][0] == (double)ranks * (NUMBERS - 1 + run) &&
                      sum[NUMBERS - 1][1] == (double)ranks * (ranks - 1) / 2,
                  "the sum is %f, %f", sum[NUMBERS - 1][0], sum[NUMBERS - 1][1]);
        }
    }
}

static void rounds(MPI_Comm comm, int salt)
{
    static const int sizes[] = {5000, 8192, 10000, 16384, 20000, 5001, 16383, 7777, 9999, 12345};

    for (int i = 0; i < ROUNDS; i++) {
        int n = sizes[i % 7 == 6 ? (i / 7) % 10 : i % 2];
        if ((i + rank) % 5 == 0) {
            usleep(200);
        }
        allreduce(comm, n, salt + i, i % 3 == 0 ? MPI_MAX : MPI_SUM);
        reduce_scatter_block(comm, n / ranks, salt + i);
        if (i % 10 == 9) {
            others(comm, salt + i);
        }
    }
}

int main(int argc, char **argv)
{
    bool is_expected = getenv("EXPECT_STANDING") != NULL;
    unsigned long long stood = 0;
    struct counter counter;
    MPI_Comm comm;
    int provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    if (is_expected) {
        counter = counter_begin("coll_ibshift_standing");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rounds(MPI_COMM_WORLD, 1);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        rounds(comm, i);
        MPI_Comm_free(&comm);
    }
    for (int algorithm = 1; algorithm < 4; algorithm++) {
        parameter_set("coll_ibshift_allreduce_algorithm", algorithm);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        gaps(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int algorithm = 1; algorithm < 4; algorithm++) {
        parameter_set("coll_ibshift_allreduce_algorithm", algorithm);
        rounds(comm, algorithm);
    }
    MPI_Comm_free(&comm);
    parameter_set("coll_ibshift_allreduce_algorithm", 0);
    if (is_expected) {
        stood = counter_end(&counter);
    }
    MPI_Allreduce(MPI_IN_PLACE, &stood, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(stood > 0 || !is_expected, "no grant stood");
    if (rank == 0) {
        printf("%llu long messages with a grant that stood\n", stood);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
