/*
 * Collectives that come again run down a tape (coll_ibshift_tapes). Here everything that a tape
 * could remember wrongly changes between the calls: counts, roots, buffers, types, operators,
 * communicators, parameters. Every result is compared with what it must be. All of it once with
 * blocking calls and once with nonblocking ones; persistent ones, whose tapes are their own, besides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { LOTS = 24, MOST = 4096, TIMES = 40 };

static int rank, ranks;
static enum form form;

#define CALL(Name, name, ...)                                                                      \
    do {                                                                                           \
        struct run run = run_begin(form);                                                          \
        RUN(&run, Name, name, __VA_ARGS__);                                                        \
    } while (0)

static int from[LOTS * MOST], to[LOTS * MOST];

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

static void compare(const int *data, int count, int of, int first, int salt, const char *what)
{
    for (int i = 0; i < count; i++) {
        CHECK(data[i] == value(of, first + i, salt), "%s: element %d of rank %d is %d, not %d",
              what, i, of, data[i], value(of, first + i, salt));
    }
}

/* Of all ranks up to `last`. */
static int sum(int last, int index, int salt)
{
    int s = 0;

    for (int i = 0; i <= last; i++) {
        s += value(i, index, salt);
    }
    return s;
}

static void compare_sums(const int *data, int count, int last, int first, int salt,
                         const char *what)
{
    for (int i = 0; i < count; i++) {
        CHECK(data[i] == sum(last, first + i, salt), "%s: sum %d is %d, not %d", what, i, data[i],
              sum(last, first + i, salt));
    }
}

/* Everything once with n elements. */
static void all_of_them(MPI_Comm comm, int n, int salt)
{
    int root = salt % ranks, counts[LOTS], displs[LOTS], total = 0;

    for (int i = 0; i < ranks; i++) {
        counts[i] = (i + salt) % 3 * n / 2;
        displs[i] = total;
        total += counts[i];
    }
    fill(from, ranks * n, salt);
    CALL(Barrier, barrier, comm);
    memcpy(to, from, (size_t)n * sizeof(int));
    CALL(Bcast, bcast, to, n, MPI_INT, root, comm);
    compare(to, n, root, 0, salt, "bcast");
    CALL(Scatter, scatter, from, n, MPI_INT, to, n, MPI_INT, root, comm);
    compare(to, n, root, rank * n, salt, "scatter");
    CALL(Gather, gather, from, n, MPI_INT, to, n, MPI_INT, root, comm);
    CALL(Allgather, allgather, from, n, MPI_INT, to, n, MPI_INT, comm);
    for (int i = 0; i < ranks; i++) {
        compare(to + i * n, n, i, 0, salt, "allgather");
    }
    CALL(Allgatherv, allgatherv, from, counts[rank], MPI_INT, to, counts, displs, MPI_INT, comm);
    for (int i = 0; i < ranks; i++) {
        compare(to + displs[i], counts[i], i, 0, salt, "allgatherv");
    }
    CALL(Alltoall, alltoall, from, n, MPI_INT, to, n, MPI_INT, comm);
    for (int i = 0; i < ranks; i++) {
        compare(to + i * n, n, i, rank * n, salt, "alltoall");
    }
    CALL(Reduce, reduce, from, to, n, MPI_INT, MPI_SUM, root, comm);
    if (rank == root) {
        compare_sums(to, n, ranks - 1, 0, salt, "reduce");
    }
    CALL(Allreduce, allreduce, from, to, n, MPI_INT, MPI_SUM, comm);
    compare_sums(to, n, ranks - 1, 0, salt, "allreduce");
    memcpy(to, from, (size_t)n * sizeof(int));
    CALL(Allreduce, allreduce, MPI_IN_PLACE, to, n, MPI_INT, MPI_SUM, comm);
    compare_sums(to, n, ranks - 1, 0, salt, "allreduce in place");
    CALL(Reduce_scatter_block, reduce_scatter_block, from, to, n, MPI_INT, MPI_SUM, comm);
    compare_sums(to, n, ranks - 1, rank * n, salt, "reduce_scatter_block");
    CALL(Reduce_scatter, reduce_scatter, from, to, counts, MPI_INT, MPI_SUM, comm);
    compare_sums(to, counts[rank], ranks - 1, displs[rank], salt, "reduce_scatter");
    CALL(Scan, scan, from, to, n, MPI_INT, MPI_SUM, comm);
    compare_sums(to, n, rank, 0, salt, "scan");
    CALL(Exscan, exscan, from, to, n, MPI_INT, MPI_SUM, comm);
    if (rank > 0) {
        compare_sums(to, n, rank - 1, 0, salt, "exscan");
    }
}

/* A counter of MPI_T, from here on. */
struct counter {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

static struct counter counter_begin(const char *name)
{
    struct counter c;
    int index, count;

    MPI_T_pvar_session_create(&c.session);
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS,
          "there is no %s", name);
    CHECK(MPI_T_pvar_handle_alloc(c.session, index, NULL, &c.handle, &count) == MPI_SUCCESS &&
              MPI_T_pvar_start(c.session, c.handle) == MPI_SUCCESS,
          "%s does not start", name);
    return c;
}

static unsigned long long counter_end(struct counter *c)
{
    unsigned long long result = 0;

    CHECK(MPI_T_pvar_read(c->session, c->handle, &result) == MPI_SUCCESS, "it cannot be read");
    MPI_T_pvar_handle_free(c->session, &c->handle);
    MPI_T_pvar_session_free(&c->session);
    return result;
}

static void check_taped(struct counter *counter)
{
    const char *expected = getenv("EXPECT_TAPES");
    unsigned long long taped = counter_end(counter);

    CHECK(expected == NULL || (taped > 0) == (atoi(expected) != 0), "%llu calls ran down a tape",
          taped);
}

static void set(const char *name, int number)
{
    MPI_T_cvar_handle handle;
    bool flag = number != 0;
    int index, count;

    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS, "there is no %s", name);
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS, "no handle");
    CHECK(MPI_T_cvar_write(handle, strstr(name, "tapes") != NULL ? (void *)&flag
                                                                 : (void *)&number) == MPI_SUCCESS,
          "%s cannot be written", name);
    MPI_T_cvar_handle_free(&handle);
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
        struct counter sends = counter_begin("coll_ibshift_messages");
        struct counter recvs = counter_begin("coll_ibshift_messages_received");

        set("coll_ibshift_tapes", tapes);
        for (int i = 0; i < TIMES; i++) {
            all_of_them(MPI_COMM_WORLD, 5, 3);
        }
        sent[tapes] = counter_end(&sends);
        got[tapes] = counter_end(&recvs);
    }
    CHECK(sent[0] > 0 && sent[0] == sent[1], "%llu sends without tapes, %llu with", sent[0],
          sent[1]);
    CHECK(got[0] > 0 && got[0] == got[1], "%llu receives without tapes, %llu with", got[0], got[1]);
    set("coll_ibshift_tapes", 1);
}

static void buffers_move_and_are_unmapped(void)
{
    size_t size = (size_t)1 << 16;

    for (int i = 0; i < TIMES; i++) {
        int *mine = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int *theirs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(mine != MAP_FAILED && theirs != MAP_FAILED, "no memory");
        fill(mine + i, 8, i);
        CALL(Allreduce, allreduce, mine + i, theirs + 3 * i, 8, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        compare_sums(theirs + 3 * i, 8, ranks - 1, 0, i, "allreduce of memory that moves");
        munmap(mine, size);
        munmap(theirs, size);
    }
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
        bool adds = i % 2 == 0;
        MPI_Op op;

        MPI_Op_create(adds ? add : largest, i % 4 < 2, &op);
        fill(from, 6, i);
        CALL(Allreduce, allreduce, from, to, 6, MPI_INT, op, MPI_COMM_WORLD);
        if (adds) {
            compare_sums(to, 6, ranks - 1, 0, i, "allreduce with an operator of the program");
        } else {
            compare(to, 6, ranks - 1, 0, i, "allreduce with another operator");
        }
        MPI_Op_free(&op);
    }
}

/* Composes maps x -> a x + b, pairs of numbers: the order of the ranks counts. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const unsigned *first = in;
    unsigned *then = inout;

    for (int i = 0; i + 1 < *n; i += 2) {
        then[i + 1] += then[i] * first[i + 1];
        then[i] *= first[i];
    }
    (void)type;
}

static void check_composition(MPI_Op op, MPI_Datatype pair)
{
    unsigned mine[2] = {3 + 2 * (unsigned)rank, 7 + (unsigned)rank}, all[2], expected[2] = {1, 0};

    for (unsigned i = 0; i < (unsigned)ranks; i++) {
        expected[1] = expected[1] * (3 + 2 * i) + 7 + i;
        expected[0] *= 3 + 2 * i;
    }
    CALL(Allreduce, allreduce, mine, all, 1, pair, op, MPI_COMM_WORLD);
    CHECK(all[0] == expected[0] && all[1] == expected[1], "composed to %u, %u, not %u, %u", all[0],
          all[1], expected[0], expected[1]);
}

static void compose_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int numbers = 2 * *n;

    compose(in, inout, &numbers, type);
}

static void add_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
    int numbers = 2 * *n;

    add(in, inout, &numbers, type);
}

/* One that commutes and one that does not, at the same address. */
static void order_of_ranks_comes_and_goes(void)
{
    MPI_Datatype pair;

    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < TIMES; i++) {
        MPI_Op op;

        MPI_Op_create(i % 2 == 0 ? add_pairs : compose_pairs, i % 2 == 0, &op);
        for (int again = 0; again < 4; again++) {
            if (i % 2 == 0) {
                fill(from, 2, i);
                CALL(Allreduce, allreduce, from, to, 1, pair, op, MPI_COMM_WORLD);
                compare_sums(to, 2, ranks - 1, 0, i, "allreduce of pairs");
            } else {
                check_composition(op, pair);
            }
        }
        MPI_Op_free(&op);
    }
    MPI_Type_free(&pair);
}

/* A root that keeps its block where it is, every other time. */
static void buffers_are_in_place_by_turns(void)
{
    for (int i = 0; i < 2 * TIMES; i++) {
        bool in_place = i % 2 == 1 && rank == 0;

        fill(from, 3 * ranks, i);
        memset(to, 0xff, sizeof(int) * 3);
        CALL(Scatter, scatter, from, 3, MPI_INT, in_place ? MPI_IN_PLACE : to, 3, MPI_INT, 0,
             MPI_COMM_WORLD);
        if (!in_place) {
            compare(to, 3, 0, 3 * rank, i, "scatter");
        }
        fill(from, 3, i);
        memcpy(to, from, sizeof(int) * 3);
        CALL(Gather, gather, in_place ? MPI_IN_PLACE : from, 3, MPI_INT, to, 3, MPI_INT, 0,
             MPI_COMM_WORLD);
        for (int k = 0; rank == 0 && k < ranks; k++) {
            compare(to + 3 * k, 3, k, 0, i, "gather");
        }
        memcpy(to, from, sizeof(int) * 3);
        CALL(Reduce, reduce, in_place ? MPI_IN_PLACE : from, to, 3, MPI_INT, MPI_SUM, 0,
             MPI_COMM_WORLD);
        if (rank == 0) {
            compare_sums(to, 3, ranks - 1, 0, i, "reduce");
        }
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
            compare_sums(to, N, ranks - 1, 0, i, "reduce, others in place");
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
        set("coll_ibshift_allreduce_algorithm", i % 6 < 3 ? 0 : 2);
        set("coll_ibshift_bcast_radix", i % 8 < 4 ? 0 : 2);
        set("coll_ibshift_tapes", i % 10 < 8);
        CALL(Barrier, barrier, MPI_COMM_WORLD);
        all_of_them(MPI_COMM_WORLD, 4, 2);
    }
    set("coll_ibshift_allreduce_algorithm", 0);
    set("coll_ibshift_bcast_radix", 0);
    set("coll_ibshift_tapes", 1);
}

/* The ranks but the root say the same, yet the plans differ: splitting needs all sizes. */
static void blocks_and_vectors_alternate(void)
{
    int counts[LOTS], displs[LOTS];

    for (int i = 0; i < ranks; i++) {
        counts[i] = 2;
        displs[i] = 2 * i;
    }
    set("coll_ibshift_scatter_algorithm", 3);
    for (int i = 0; i < 4 * TIMES; i++) {
        bool is_vector = i % 8 >= 4;

        fill(from, 2 * ranks, i);
        if (is_vector) {
            CALL(Scatterv, scatterv, from, counts, displs, MPI_INT, to, 2, MPI_INT, 0,
                 MPI_COMM_WORLD);
        } else {
            CALL(Scatter, scatter, from, 2, MPI_INT, to, 2, MPI_INT, 0, MPI_COMM_WORLD);
        }
        compare(to, 2, 0, 2 * rank, i, is_vector ? "scatterv" : "scatter");
        if (is_vector) {
            CALL(Allgatherv, allgatherv, from, 2, MPI_INT, to, counts, displs, MPI_INT,
                 MPI_COMM_WORLD);
        } else {
            CALL(Allgather, allgather, from, 2, MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
        }
        for (int k = 0; k < ranks; k++) {
            compare(to + 2 * k, 2, k, 0, i, is_vector ? "allgatherv" : "allgather");
        }
    }
    set("coll_ibshift_scatter_algorithm", 0);
}

/* With 5 ranks the root of a tree has 3 children of radix 1, and 4 of radix 4. */
static void parameters_take_effect(void)
{
    unsigned long long sent[2];

    set("coll_ibshift_bcast_algorithm", 1);
    for (int i = 0; i < 4; i++) {
        struct counter counter = counter_begin("coll_ibshift_messages");

        set("coll_ibshift_bcast_radix", i % 2 == 0 ? 1 : 4);
        for (int k = 0; k < TIMES; k++) {
            CALL(Bcast, bcast, to, 3, MPI_INT, 0, MPI_COMM_WORLD);
        }
        sent[i % 2] = counter_end(&counter);
        if (ranks == 5 && rank == 0) {
            CHECK(sent[i % 2] == (i % 2 == 0 ? 3 : 4) * (unsigned long long)TIMES,
                  "%llu messages of %d broadcasts", sent[i % 2], TIMES);
        }
    }
    set("coll_ibshift_bcast_algorithm", 0);
    set("coll_ibshift_bcast_radix", 0);
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
            i % 2 == 0 ? compare_sums(sums[k], N, ranks - 1, 0, i + k, "a freed operator's sums")
                       : compare(sums[k], N, ranks - 1, 0, i + k, "another freed operator's");
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
        set("coll_ibshift_tapes", i % 8 != 7);
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
            compare_sums(sums[k], N, ranks - 1, 0, i + k, "persistent allreduce");
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
                                       buffers_move_and_are_unmapped,
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
    if (rank == 0) {
        printf("tapes: right\n");
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
