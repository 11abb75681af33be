/*
 * Collectives that come again run down a tape (coll_ibshift_tapes). Here everything that a tape
 * could remember wrongly changes between the calls: counts, roots, buffers, types, operators,
 * communicators, parameters. Every result is compared with what it must be. All of it once with
 * blocking calls and once with nonblocking ones; persistent ones, whose tapes are their own, besides.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"

enum { LOTS = 24, MOST = 4096, TIMES = 40, ALL = -1 /* ranks' sum */ };

static int rank, ranks, from[LOTS * MOST], to[LOTS * MOST];
static enum form form;

#define CALL(Name, name, ...)                                                                      \
    do {                                                                                           \
        struct run run = run_begin(form);                                                          \
        RUN(&run, Name, name, __VA_ARGS__);                                                        \
    } while (0)

static int value(int of, int index, int salt)
{
    return of * 1000 + index * 7 + salt;
}

static void fill(int *data, int count, int salt)
{
    for (int i = 0; i < count; i++) {
        data[i] = value(rank, i, salt);
    }
}

static int wanted(int of, int index, int salt)
{
    int sum = 0;

    for (int i = 0; i < ranks && of == ALL; i++) {
        sum += value(i, index, salt);
    }
    return of == ALL ? sum : value(of, index, salt);
}

static void compare(const int *data, int count, int of, int first, int salt, const char *what)
{
    for (int i = 0; i < count; i++) {
        CHECK(data[i] == wanted(of, first + i, salt), "%s: element %d of rank %d is %d, not %d",
              what, i, of, data[i], wanted(of, first + i, salt));
    }
}

static void check(struct job job, MPI_Comm comm)
{
    job_check(&job, comm, form);
    job_free(&job);
}

/* Everything once with n elements, or about as many in a block. */
static void all_of_them(MPI_Comm comm, int n, int salt)
{
    for (int i = 0; i < JOB_COLLECTIVE_COUNT; i++) {
        check(job_of(comm, (enum job_collective)i, n, salt % ranks, MPI_SUM, MPI_INT,
                     (uint64_t)salt + 1),
              comm);
    }
}

static void check_taped(struct counter *counter)
{
    const char *expected = getenv("EXPECT_TAPES");
    unsigned long long taped = counter_end(counter);

    CHECK(expected == NULL || (taped > 0) == (atoi(expected) != 0), "%llu calls ran down a tape",
          taped);
}

static void again_and_again(void)
{
    struct counter counter = counter_begin("coll_ibshift_taped");

    for (int i = 0; i < TIMES; i++) {
        all_of_them(MPI_COMM_WORLD, 3, 1);
    }
    check_taped(&counter);
}

static void counts_and_roots_alternate(void)
{
    static const int counts[] = {1, 2, 1, 64, 0, 600, 2, 5, 1, 300};

    for (int i = 0; i < 2 * TIMES; i++) {
        all_of_them(MPI_COMM_WORLD, counts[i % 10], i % 7);
    }
}

static void messages_are_the_same(void)
{
    unsigned long long sent[2], got[2];

    for (int tapes = 1; tapes >= 0; tapes--) {
        struct counter sends, recvs;
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* by its number, a call also compares counts */
        sends = counter_begin("coll_ibshift_messages");
        recvs = counter_begin("coll_ibshift_messages_received");
        parameter_set("coll_ibshift_tapes", tapes);
        for (int i = 0; i < TIMES; i++) {
            all_of_them(comm, 5, 3);
        }
        sent[tapes] = counter_end(&sends);
        got[tapes] = counter_end(&recvs);
        MPI_Comm_free(&comm);
    }
    CHECK(sent[0] > 0 && sent[0] == sent[1], "%llu sends without tapes, %llu with", sent[0],
          sent[1]);
    CHECK(got[0] > 0 && got[0] == got[1], "%llu receives without tapes, %llu with", got[0], got[1]);
    parameter_set("coll_ibshift_tapes", 1);
}

static void bcast_of_type(MPI_Datatype type, bool has_gaps, int salt)
{
    memset(to, 0xff, 64);
    if (rank == 0) {
        fill(to, 8, salt);
    }
    CALL(Bcast, bcast, to, 1, type, 0, MPI_COMM_WORLD);
    for (int k = 0; k < 8; k++) {
        bool is_sent = rank == 0 || (has_gaps ? k % 2 == 0 && k < 7 : k < 4);

        CHECK(to[k] == (is_sent ? value(0, k, salt) : -1), "bcast of a type%s: element %d is %d",
              has_gaps ? " with gaps" : "", k, to[k]);
    }
}

/* Types of the same size, one of them with gaps; they get each other's addresses. */
static void types_come_and_go(void)
{
    for (int i = 0; i < TIMES; i++) {
        MPI_Datatype type;
        bool has_gaps = i % 3 == 2;

        if (has_gaps) {
            MPI_Type_vector(4, 1, 2, MPI_INT, &type);
        } else {
            MPI_Type_contiguous(4, MPI_INT, &type);
        }
        MPI_Type_commit(&type);
        for (int again = 0; again < 3; again++) {
            bcast_of_type(type, has_gaps, i + again);
        }
        MPI_Type_free(&type);
    }
}

/* Bytes of the type land where `lands` has an x, and nowhere else; blocks are 16 bytes apart. */
static void exchange(MPI_Datatype type, int count, const char *lands, bool in_place, int salt)
{
    static MPI_Datatype types[LOTS];
    static int counts[LOTS], displs[LOTS];
    char *mine = (char *)from, *theirs = (char *)to;

    for (int i = 0; i < ranks; i++) {
        types[i] = type;
        counts[i] = count;
        displs[i] = 16 * i;
    }
    memset(theirs, 0x7f, (size_t)ranks * 16);
    for (int k = 0; k < 16 * ranks; k++) {
        mine[k] = (char)(rank * 31 + k + salt);
    }
    if (in_place) {
        memcpy(theirs, mine, (size_t)ranks * 16);
    }
    CALL(Alltoallw, alltoallw, in_place ? MPI_IN_PLACE : mine, counts, displs, types, theirs,
         counts, displs, types, MPI_COMM_WORLD);
    for (int k = 0; k < 16 * ranks; k++) {
        int of = k / 16, index = 16 * rank + k % 16;
        char old = (char)(in_place ? rank * 31 + k + salt : 0x7f);
        char expected = lands[k % 16] == 'x' ? (char)(of * 31 + index + salt) : old;

        CHECK(theirs[k] == expected, "alltoallw: byte %d is %d, not %d", k, theirs[k], expected);
    }
}

/* Of the program's types one gets the other's address. */
static void types_of_blocks_change(void)
{
    for (int i = 0; i < TIMES; i++) {
        MPI_Datatype type;

        for (int again = 0; again < 3; again++) {
            exchange(MPI_INT, 2, "xxxxxxxx........", false, i + again);
            exchange(MPI_SHORT, 2, "xxxx............", false, i + again);
            exchange(MPI_SHORT, 4, "xxxxxxxx........", i % 2 == 0, i + again);
            exchange(MPI_DOUBLE_INT, 1, "xxxxxxxxxxxx....", false, i);
        }
        if (i % 3 == 2) {
            MPI_Type_vector(2, 1, 2, MPI_SHORT, &type);
        } else {
            MPI_Type_contiguous(2, MPI_SHORT, &type);
        }
        MPI_Type_commit(&type);
        for (int again = 0; again < 3; again++) {
            exchange(type, 1, i % 3 == 2 ? "xx..xx.........." : "xxxx............", false,
                     i + again);
        }
        MPI_Type_free(&type);
    }
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    for (int i = 0; i < *n; i++) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
    (void)type;
}

/* The values grow with the rank: the last one has the largest. */
static void largest(void *in, void *inout, int *n, MPI_Datatype *type)
{
    for (int i = 0; i < *n; i++) {
        if (((int *)in)[i] > ((int *)inout)[i]) {
            ((int *)inout)[i] = ((int *)in)[i];
        }
    }
    (void)type;
}

static void operators_come_and_go(void)
{
    for (int i = 0; i < TIMES; i++) {
        MPI_Op op;

        MPI_Op_create(i % 2 == 0 ? add : largest, i % 4 < 2, &op);
        check(job_of(MPI_COMM_WORLD, JOB_ALLREDUCE, 6, 0, op, MPI_INT, 1), MPI_COMM_WORLD);
        MPI_Op_free(&op);
    }
}

/* One that commutes and one that does not, at the same address. */
static void order_of_ranks_comes_and_goes(void)
{
    struct layout layout = layout_create(LAYOUT_INT);

    for (int i = 0; i < TIMES; i++) {
        MPI_Op op;

        if (i % 2 == 0) {
            MPI_Op_create(add, true, &op);
        } else {
            op = compose_op(&layout);
        }
        for (int again = 0; again < 4; again++) {
            check(job_of(MPI_COMM_WORLD, JOB_ALLREDUCE, 2, 0, op, MPI_INT, 1), MPI_COMM_WORLD);
        }
        MPI_Op_free(&op);
    }
    layout_free(&layout);
}

/* A root that keeps its block where it is, every other time. */
static void buffers_are_in_place_by_turns(void)
{
    static const enum job_collective which[] = {JOB_SCATTER, JOB_GATHER, JOB_REDUCE};

    for (int i = 0; i < 6 * TIMES; i++) {
        struct job job = job_of(MPI_COMM_WORLD, which[i % 3], 3, 0, MPI_SUM, MPI_INT, 1);

        job.in_place = i / 3 % 2 == 1;
        check(job, MPI_COMM_WORLD);
    }
}

/* Buffers that the arguments do not name: the type does, or the rank uses none. */
static void buffers_are_elsewhere(void)
{
    enum { N = 6 };
    static int mine[TIMES * N];
    MPI_Datatype at_to;
    MPI_Aint place;

    MPI_Get_address(to, &place);
    MPI_Type_create_hindexed(1, (int[]){N}, &place, MPI_INT, &at_to);
    MPI_Type_commit(&at_to);
    for (int i = 0; i < TIMES; i++) {
        fill(to, rank == 0 ? N : 0, i);
        CALL(Bcast, bcast, MPI_BOTTOM, 1, at_to, 0, MPI_COMM_WORLD);
        compare(to, N, 0, 0, i, "bcast from MPI_BOTTOM");
        fill(mine + i * N, N, i);
        CALL(Reduce, reduce, mine + i * N, rank == 0 ? to : MPI_IN_PLACE, N, MPI_INT, MPI_SUM, 0,
             MPI_COMM_WORLD);
        if (rank == 0) {
            compare(to, N, ALL, 0, i, "reduce, others in place");
        }
    }
    MPI_Type_free(&at_to);
}

static void communicators_come_and_go(void)
{
    for (int i = 0; i < TIMES / 4; i++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int k = 0; k < 4; k++) {
            all_of_them(comm, 4, i);
        }
        MPI_Comm_free(&comm);
    }
}

static void parameters_change(void)
{
    for (int i = 0; i < TIMES; i++) {
        CALL(Barrier, barrier, MPI_COMM_WORLD);
        parameter_set("coll_ibshift_allreduce_algorithm", i % 6 < 3 ? 0 : 2);
        parameter_set("coll_ibshift_bcast_radix", i % 8 < 4 ? 0 : 2);
        parameter_set("coll_ibshift_tapes", i % 10 < 8);
        CALL(Barrier, barrier, MPI_COMM_WORLD);
        all_of_them(MPI_COMM_WORLD, 4, 2);
    }
    parameter_set("coll_ibshift_allreduce_algorithm", 0);
    parameter_set("coll_ibshift_bcast_radix", 0);
    parameter_set("coll_ibshift_tapes", 1);
}

/* The ranks but the root say the same, yet the plans differ: splitting needs all sizes. */
static void blocks_and_vectors_alternate(void)
{
    static const enum job_collective which[2][2] = {{JOB_SCATTER, JOB_ALLGATHER},
                                                    {JOB_SCATTERV, JOB_ALLGATHERV}};

    parameter_set("coll_ibshift_scatter_algorithm", 3);
    for (int i = 0; i < 8 * TIMES; i++) {
        check(job_of(MPI_COMM_WORLD, which[i / 8 % 2][i % 2], 2, 0, MPI_SUM, MPI_INT, 0),
              MPI_COMM_WORLD);
    }
    parameter_set("coll_ibshift_scatter_algorithm", 0);
}

/* With 5 ranks the root of a tree has 3 children of radix 1, and 4 of radix 4. */
static void parameters_take_effect(void)
{
    unsigned long long sent[2];

    parameter_set("coll_ibshift_bcast_algorithm", 1);
    for (int i = 0; i < 4; i++) {
        struct counter counter = counter_begin("coll_ibshift_messages");

        parameter_set("coll_ibshift_bcast_radix", i % 2 == 0 ? 1 : 4);
        for (int k = 0; k < TIMES; k++) {
            CALL(Bcast, bcast, to, 3, MPI_INT, 0, MPI_COMM_WORLD);
        }
        sent[i % 2] = counter_end(&counter);
        if (ranks == 5 && rank == 0) {
            CHECK(sent[i % 2] == (i % 2 == 0 ? 3 : 4) * (unsigned long long)TIMES,
                  "%llu messages of %d broadcasts", sent[i % 2], TIMES);
        }
    }
    parameter_set("coll_ibshift_bcast_algorithm", 0);
    parameter_set("coll_ibshift_bcast_radix", 0);
}

static void be_late(bool is_late)
{
    for (volatile unsigned turns = 0; is_late && turns < 1000000; turns++) {
    }
}

/* Some ranks come late: the others leave their tapes in the middle. */
static void some_are_late(void)
{
    for (int i = 0; i < TIMES; i++) {
        be_late(i % ranks == rank);
        all_of_them(MPI_COMM_WORLD, 4, 5);
    }
}

/* Several at a time, and all that they were called with is freed before they end. */
static void freed_while_pending(void)
{
    enum { AT_ONCE = 5, N = 4 };
    static int mine[AT_ONCE][N], sums[AT_ONCE][N], all[LOTS * N];

    for (int i = 0; i < TIMES; i++) {
        MPI_Request requests[AT_ONCE + 2];
        MPI_Datatype type;
        MPI_Comm comm;
        MPI_Op op;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Type_contiguous(N, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Op_create(i % 2 == 0 ? add : largest, i % 4 < 2, &op);
        be_late(i % (2 * ranks) == rank);
        for (int k = 0; k < AT_ONCE; k++) {
            fill(mine[k], N, i + k);
            MPI_Iallreduce(mine[k], sums[k], N, MPI_INT, op, comm, &requests[k]);
        }
        MPI_Iallgather(mine[0], 1, type, all, 1, type, comm, &requests[AT_ONCE]);
        MPI_Ibarrier(comm, &requests[AT_ONCE + 1]);
        MPI_Op_free(&op);
        MPI_Type_free(&type);
        MPI_Comm_free(&comm);
        MPI_Waitall(AT_ONCE + 2, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < AT_ONCE; k++) {
            compare(sums[k], N, i % 2 == 0 ? ALL : ranks - 1, 0, i + k, "a freed operator's");
        }
        for (int k = 0; k < ranks; k++) {
            compare(all + k * N, N, k, 0, i, "iallgather of a freed type");
        }
    }
}

/* Started in another order each time, one rank late; operator and type are freed before the first. */
static void persistent_ones_start_again(void)
{
    enum { MANY = 3, N = 4 };
    static int mine[MANY][N], sums[MANY][N], all[LOTS * N];
    struct counter counter = counter_begin("coll_ibshift_taped");
    MPI_Request requests[MANY + 1];
    MPI_Datatype type;
    MPI_Op op;

    MPI_Type_vector(2, N / 2, N / 2 + 1, MPI_INT, &type); /* with a gap: it is staged */
    MPI_Type_commit(&type);
    MPI_Op_create(add, true, &op);
    for (int k = 0; k < MANY; k++) {
        PERSISTENT(Allreduce)
        (mine[k], sums[k], N, MPI_INT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k]);
    }
    PERSISTENT(Bcast)(all, 1, type, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[MANY]);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    for (int i = 0; i < 4 * TIMES; i++) {
        parameter_set("coll_ibshift_tapes", i % 8 != 7);
        fill(all, N + 1, i);
        be_late(i % (3 * ranks) == rank);
        for (int k = 0; k <= MANY; k++) {
            int which = (k + i + rank) % (MANY + 1);

            if (which < MANY) {
                fill(mine[which], N, i + which);
            }
            MPI_Start(&requests[which]);
        }
        MPI_Waitall(MANY + 1, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < MANY; k++) {
            compare(sums[k], N, ALL, 0, i + k, "persistent allreduce");
        }
        compare(all, N / 2, 1, 0, i, "persistent bcast");
        compare(all + N / 2, 1, rank, N / 2, i, "the gap of a persistent bcast");
        compare(all + N / 2 + 1, N / 2, 1, N / 2 + 1, i, "persistent bcast");
    }
    for (int k = 0; k <= MANY; k++) {
        MPI_Request_free(&requests[k]);
    }
    if (rank == 1) { /* it only sends in the bcast, and so waits for nobody */
        check_taped(&counter);
    }
}

static void (*const checks[])(void) = {again_and_again,
                                       counts_and_roots_alternate,
                                       messages_are_the_same,
                                       types_come_and_go,
                                       types_of_blocks_change,
                                       operators_come_and_go,
                                       order_of_ranks_comes_and_goes,
                                       blocks_and_vectors_alternate,
                                       buffers_are_in_place_by_turns,
                                       buffers_are_elsewhere,
                                       communicators_come_and_go,
                                       parameters_change,
                                       parameters_take_effect,
                                       some_are_late};

int main(int argc, char **argv)
{
    int provided;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks <= LOTS, "at most %d ranks", LOTS);
    for (form = FORM_BLOCKING; form <= FORM_NONBLOCKING; form++) {
        for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
            checks[i]();
        }
    }
    freed_while_pending();
    persistent_ones_start_again();
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
