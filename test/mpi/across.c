/*
 * MPI_Reduce_scatter in place: the result of a rank begins at its buffer's start and its own operand
 * behind those of the ranks before it, so that the two may lie across each other.
 */
#include <stdlib.h>

#include "check.h"

enum { RANKS_MOST = 16, BEFORE = 20, OWN = 70, RANK_VALUE = 1000 };

static int rank, size;

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const int *from = in;
    int *to = inout;

    (void)type;
    for (int i = 0; i < *n; i++) {
        to[i] += from[i];
    }
}

static void check(int first, int own, MPI_Op op)
{
    int counts[RANKS_MOST], before = 0, total = 0, *data;

    for (int i = 0; i < size; i++) {
        counts[i] = i == 0 ? first : own + i;
        before += i < rank ? counts[i] : 0;
        total += counts[i];
    }
    data = calloc((size_t)total + 1, sizeof(*data));
    CHECK(data != NULL, "no memory");
    for (int i = 0; i < total; i++) {
        data[i] = RANK_VALUE * rank + i;
    }
    MPI_Reduce_scatter(MPI_IN_PLACE, data, counts, MPI_INT, op, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++) {
        int sum = RANK_VALUE * (size * (size - 1) / 2) + size * (before + i);

        CHECK(data[i] == sum, "first %d, own %d: element %d is %d, not %d", first, own, i, data[i],
              sum);
    }
    free(data);
}

int main(int argc, char **argv)
{
    MPI_Op sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= RANKS_MOST, "at most %d ranks", RANKS_MOST);
    MPI_Op_create(add, 1, &sum);
    for (int first = 0; first < BEFORE; first++) {
        for (int own = 0; own < OWN; own++) {
            check(first, own, MPI_SUM);
            check(first, own, sum);
        }
    }
    MPI_Op_free(&sum);
    MPI_Finalize();
    return 0;
}
