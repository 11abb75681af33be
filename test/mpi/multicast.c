/*
 * What goes by multicast, each byte checked: of broadcasts roots that change and run ahead, lengths around those of a
 * datagram, nonblocking ones beside each other, communicators that are freed at once.
 *     multicast           all broadcasts
 *     multicast together  allreduce and allgather, the first of them nonblocking, before there is a group
 *     multicast tapes     nonblocking ones before and after the group is made, one rank's into a type with gaps
 *     multicast member    until a member dies: each of the others gets an error and says so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { MOST = 40000, MANY = 100, AT_ONCE = 70, COMMUNICATORS = 6 };

static int rank, ranks;

static char byte_at(int number, int i)
{
    return (char)(number * 31 + i * 7 + i / 256);
}

static void fill(char *data, int bytes, int number)
{
    for (int i = 0; i < bytes; i++) {
        data[i] = byte_at(number, i);
    }
}

static void check(const char *data, int bytes, int number, const char *what)
{
    for (int i = 0; i < bytes; i++) {
        CHECK(data[i] == byte_at(number, i), "%s number %d of %d bytes: byte %d is wrong", what,
              number, bytes, i);
    }
}

static void one(MPI_Comm comm, int root, int bytes, int number)
{
    static char data[MOST];
    int self;

    MPI_Comm_rank(comm, &self);
    memset(data, 0, (size_t)bytes);
    if (self == root) {
        fill(data, bytes, number);
    }
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    check(data, bytes, number, "bcast");
}

static void lengths(MPI_Comm comm)
{
    static const int bytes[] = {0,    1,    8,    100,  1991, 1992,  2016,  2017,
                                4063, 4064, 4065, 4096, 8128, 12000, 32513, MOST};
    int size;

    MPI_Comm_size(comm, &size);
    for (size_t b = 0; b < sizeof(bytes) / sizeof(bytes[0]); b++) {
        for (int i = 0; i < MANY; i++) {
            one(comm, i < MANY / 2 ? 0 : i % size, bytes[b],
                i); /* one root runs ahead, then each in turn */
        }
    }
}

/* More than fit into a window, waited for from the last to the first. */
static void nonblocking(void)
{
    static char data[AT_ONCE][2000];
    MPI_Request requests[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++) {
        memset(data[i], 0, sizeof(data[i]));
        if (rank == i % 2) {
            fill(data[i], sizeof(data[i]), i);
        }
        MPI_Ibcast(data[i], sizeof(data[i]), MPI_BYTE, i % 2, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = AT_ONCE - 1; i >= 0; i--) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        check(data[i], sizeof(data[i]), i, "ibcast");
    }
}

/* The root goes on, and frees it, while others may still miss something. */
static void communicators(void)
{
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Comm comm;

        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? 0 : rank % 4 == 3, -rank, &comm);
        for (int k = 0; k < 5; k++) {
            one(comm, 0, 500, i + k);
        }
        MPI_Comm_free(&comm);
    }
}

/* Ranks run tapes by then, but the one whose message is staged. */
static void tapes(void)
{
    int data[16], is_apart = rank == ranks - 1;
    MPI_Datatype apart;
    MPI_Request request;

    MPI_Type_vector(8, 1, 2, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 16; k++) {
            data[k] = rank == 0 ? i + k : -1;
        }
        if (i == 6) {
            MPI_Bcast(data, 8, MPI_INT, 0, MPI_COMM_WORLD);
            continue;
        }
        MPI_Ibcast(data, is_apart ? 1 : 8, is_apart ? apart : MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < 8; k++) {
            CHECK(data[is_apart ? 2 * k : k] == i + k, "ibcast %d: number %d is wrong", i, k);
        }
    }
    MPI_Type_free(&apart);
}

/* number: of the call; both from the same place each time, so that tapes are made of what has them. */
static void allreduce_one(int count, int number, int *mine, int *sum)
{
    MPI_Request request;

    for (int i = 0; i < count; i++) {
        mine[i] = sum[i] = number * i + rank;
    }
    if (number % 3 == 0) {
        MPI_Iallreduce(mine, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Allreduce(number % 3 == 1 ? mine : MPI_IN_PLACE, sum, count, MPI_INT, MPI_SUM,
                      MPI_COMM_WORLD);
    }
    for (int i = 0; i < count; i++) {
        CHECK(sum[i] == ranks * (number * i) + ranks * (ranks - 1) / 2,
              "allreduce number %d of %d: element %d is wrong", number, count, i);
    }
}

static void allgather_one(int bytes, int number, char *all)
{
    char *own = all + rank * bytes;
    MPI_Request request;

    memset(all, 0, (size_t)(ranks * bytes));
    fill(own, bytes, number + rank);
    if (number % 3 == 0) {
        MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, bytes, MPI_BYTE, MPI_COMM_WORLD,
                       &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    for (int i = 0; i < ranks; i++) {
        check(all + i * bytes, bytes, number + i, "allgather");
    }
}

static void together(void)
{
    static const int bytes[] = {8, 0, 4, 500, 1992, 2016, 4064, 4068};
    static int mine[MOST / 4], sum[MOST / 4];
    char *all = malloc((size_t)ranks * MOST);

    for (size_t b = 0; b < sizeof(bytes) / sizeof(bytes[0]); b++) {
        for (int i = 0; i < MANY; i++) {
            allreduce_one(bytes[b] / 4, i, mine, sum);
        }
        for (int i = 0; i < MANY; i++) {
            allgather_one(bytes[b], i, all);
        }
    }
    free(all);
}

static int until_error(void)
{
    char data[64];
    int rc = MPI_SUCCESS;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (rc == MPI_SUCCESS) {
        memset(data, rank == 0, sizeof(data));
        rc = MPI_Bcast(data, sizeof(data), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    fprintf(stderr, "multicast: rank %d has got an error\n", rank);
    _exit(3); /* MPI_Finalize would wait for the dead */
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && strcmp(argv[1], "member") == 0) {
        return until_error();
    }
    if (argc > 1 && strcmp(argv[1], "tapes") == 0) {
        tapes();
    } else if (argc > 1 && strcmp(argv[1], "together") == 0) {
        together();
    } else {
        lengths(MPI_COMM_WORLD);
        nonblocking();
        communicators();
    }
    MPI_Finalize();
    return 0;
}
