/*
 * An array cut along its second axis becomes one cut along its third, by alltoallw on subarrays: each block has gaps where it is
 * sent and where it comes to.
 *     layouts DEPTH SIDE MOST       all forms have come to hold less than MOST bytes on each rank, but the persistent one of many
 *                                   ranks, whose grants stand
 *     layouts DEPTH SIDE time TURNS beside an alltoall of the same bytes in one piece: medians
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { AXES = 3, TURNS = 3, OPENED_LEAST = 7 };

struct array {
    int size[AXES], first; /* this rank's part along axis `cut` */
    int cut;
    int64_t *at;
    size_t count;
    MPI_Datatype *types; /* a subarray for each rank, along the other array's cut */
    int *ones, *zeros;
};

static struct array array_make(const int whole[AXES], int cut, int other)
{
    struct array array = {.cut = cut};
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memcpy(array.size, whole, sizeof(array.size));
    array.size[cut] /= ranks;
    array.first = rank * array.size[cut];
    array.count = (size_t)array.size[0] * (size_t)array.size[1] * (size_t)array.size[2];
    array.at = malloc(array.count * sizeof(int64_t));
    array.types = malloc((size_t)ranks * sizeof(MPI_Datatype));
    array.ones = calloc(2 * (size_t)ranks, sizeof(int));
    CHECK(array.at != NULL && array.types != NULL && array.ones != NULL, "no memory");
    array.zeros = array.ones + ranks;
    for (int i = 0; i < ranks; i++) {
        int part[AXES], start[AXES] = {0};

        memcpy(part, array.size, sizeof(part));
        part[other] /= ranks;
        start[other] = i * part[other];
        MPI_Type_create_subarray(AXES, array.size, part, start, MPI_ORDER_C, MPI_INT64_T,
                                 &array.types[i]);
        MPI_Type_commit(&array.types[i]);
        array.ones[i] = 1;
    }
    return array;
}

static void array_free(struct array *array)
{
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < ranks; i++) {
        MPI_Type_free(&array->types[i]);
    }
    free(array->types);
    free(array->ones);
    free(array->at);
}

/* What belongs at its i-th element. */
static int64_t value_at(const struct array *array, const int whole[AXES], size_t i, int turn)
{
    int at[AXES] = {0, 0, (int)(i % (size_t)array->size[2])};

    at[1] = (int)(i / (size_t)array->size[2] % (size_t)array->size[1]);
    at[0] = (int)(i / (size_t)array->size[2] / (size_t)array->size[1]);
    at[array->cut] += array->first;
    return (((int64_t)at[0] * whole[1] + at[1]) * whole[2] + at[2]) * (turn + 1) + 1;
}

static size_t held(void)
{
    struct mallinfo2 now = mallinfo2();

    return now.uordblks + now.hblkhd;
}

#define TRANSPOSE                                                                                  \
    from->at, from->ones, from->zeros, from->types, to->at, to->ones, to->zeros, to->types,        \
        MPI_COMM_WORLD

static void check_form(struct array *from, struct array *to, const int whole[AXES], enum form form,
                       size_t most)
{
    MPI_Request request = MPI_REQUEST_NULL;
    size_t before = held(), more;
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (form == FORM_PERSISTENT) {
        PERSISTENT(Alltoallw)(TRANSPOSE, MPI_INFO_NULL, &request);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < from->count; i++) {
            from->at[i] = value_at(from, whole, i, turn);
        }
        memset(to->at, 0, to->count * sizeof(int64_t));
        if (form == FORM_BLOCKING) {
            MPI_Alltoallw(TRANSPOSE);
        } else if (form == FORM_NONBLOCKING) {
            MPI_Ialltoallw(TRANSPOSE, &request);
        } else {
            MPI_Start(&request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < to->count; i++) {
            CHECK(to->at[i] == value_at(to, whole, i, turn), "%s, turn %d: element %zu is %lld",
                  form_names[form], turn, i, (long long)to->at[i]);
        }
    }
    more = held() < before ? 0 : held() - before;
    printf("%s: %zu bytes more\n", form_names[form], more);
    CHECK(more < most || (form == FORM_PERSISTENT && ranks >= OPENED_LEAST),
          "%s: %zu bytes more are held after the calls, not below %zu", form_names[form], more,
          most);
    if (form == FORM_PERSISTENT) {
        MPI_Request_free(&request);
    }
}

static int in_order(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

enum timed { IN_ONE_PIECE, WITH_GAPS, PACKED_ALONE, TIMED };

/* The last: what packing and unpacking take without messages. */
static void run_timed(enum timed which, struct array *from, struct array *to, char *packed)
{
    int ranks, block, at;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    block = (int)(from->count / (size_t)ranks);
    if (which == IN_ONE_PIECE) {
        MPI_Alltoall(from->at, block, MPI_INT64_T, to->at, block, MPI_INT64_T, MPI_COMM_WORLD);
        return;
    }
    if (which == WITH_GAPS) {
        MPI_Alltoallw(TRANSPOSE);
        return;
    }
    for (int i = 0; i < ranks; i++) {
        int size = block * (int)sizeof(int64_t);

        at = 0;
        MPI_Pack(from->at, 1, from->types[i], packed, size, &at, MPI_COMM_WORLD);
        at = 0;
        MPI_Unpack(packed, size, &at, to->at, 1, to->types[i], MPI_COMM_WORLD);
    }
}

static void measure(struct array *from, struct array *to, int turns)
{
    static const char *const names[TIMED] = {"one piece", "with gaps", "packed and unpacked alone"};
    double *times = malloc((size_t)turns * TIMED * sizeof(double)), most;
    char *packed = malloc(from->count * sizeof(int64_t));
    int rank;

    CHECK(times != NULL && packed != NULL, "no memory");
    memset(from->at, 1, from->count * sizeof(int64_t));
    memset(to->at, 1, to->count * sizeof(int64_t));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = -2; turn < turns; turn++) { /* the first two do not count */
        for (enum timed which = 0; which < TIMED; which++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            run_timed(which, from, to, packed);
            double took = MPI_Wtime() - start;
            MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            times[(int)which * turns + (turn < 0 ? 0 : turn)] = most;
        }
    }
    for (enum timed which = 0; rank == 0 && which < TIMED; which++) {
        qsort(times + (int)which * turns, (size_t)turns, sizeof(double), in_order);
        printf("%s: %.1f us\n", names[which], times[(int)which * turns + turns / 2] * 1e6);
    }
    free(times);
    free(packed);
}

int main(int argc, char **argv)
{
    struct array from, to;
    int whole[AXES], ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 4 || (argc == 5 && strcmp(argv[3], "time") == 0 && atoi(argv[4]) > 0),
          "usage: layouts DEPTH SIDE MOST|time TURNS");
    whole[0] = atoi(argv[1]);
    whole[1] = whole[2] = atoi(argv[2]);
    CHECK(whole[0] > 0 && whole[1] > 0 && whole[1] % ranks == 0,
          "%d ranks do not divide a side of %s", ranks, argv[2]);
    from = array_make(whole, 1, 2);
    to = array_make(whole, 2, 1);
    if (argc == 5) {
        measure(&from, &to, atoi(argv[4]));
    } else {
        for (enum form form = 0; form < FORM_COUNT; form++) {
            check_form(&from, &to, whole, form, strtoull(argv[3], NULL, 10));
        }
    }
    array_free(&from);
    array_free(&to);
    MPI_Finalize();
    return 0;
}
