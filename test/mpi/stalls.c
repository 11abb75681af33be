/*
 * So many collectives, drawn at random, one after another, checked by what they should give: no message
 * goes beneath, so that softhca-run --stalls sees all that moves.
 *     stalls COLLECTIVES [SEED]
 */
#include "check.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST = 30000, RANKS = 8, KINDS = 8, RUN = 200 };

static int rank, size;
static int send[MOST * RANKS], recv[MOST * RANKS];

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static int value(int from, int i)
{
    return from * 1000003 + i;
}

/* Element i of what this rank receives. */
static int wanted(int kind, int count, int root, int i)
{
    int sum = 0;

    switch (kind) {
    case 0: /* bcast */
        return value(root, i);
    case 1: /* allreduce */
    case 2: /* reduce */
        for (int r = 0; r < size; r++) {
            sum += value(r, i);
        }
        return sum;
    case 3: /* allgather */
    case 4: /* gather */
        return value(i / count, i % count);
    case 5: /* alltoall */
        return value(i / count, rank * count + i % count);
    case 6: /* scatter */
        return value(root, rank * count + i);
    default: /* scan */
        for (int r = 0; r <= rank; r++) {
            sum += value(r, i);
        }
        return sum;
    }
}

/* Returns how many elements this rank has received. */
static int run(int kind, int n, int root)
{
    const MPI_Comm world = MPI_COMM_WORLD;

    switch (kind) {
    case 0:
        for (int i = 0; i < n; i++) {
            recv[i] = value(rank, i);
        }
        MPI_Bcast(recv, n, MPI_INT, root, world);
        return n;
    case 1:
        MPI_Allreduce(send, recv, n, MPI_INT, MPI_SUM, world);
        return n;
    case 2:
        MPI_Reduce(send, recv, n, MPI_INT, MPI_SUM, root, world);
        return rank == root ? n : 0;
    case 3:
        MPI_Allgather(send, n, MPI_INT, recv, n, MPI_INT, world);
        return n * size;
    case 4:
        MPI_Gather(send, n, MPI_INT, recv, n, MPI_INT, root, world);
        return rank == root ? n * size : 0;
    case 5:
        MPI_Alltoall(send, n, MPI_INT, recv, n, MPI_INT, world);
        return n * size;
    case 6:
        MPI_Scatter(send, n, MPI_INT, recv, n, MPI_INT, root, world);
        return n;
    default:
        MPI_Scan(send, recv, n, MPI_INT, MPI_SUM, world);
        return n;
    }
}

int main(int argc, char **argv)
{
    int calls = argc > 1 ? atoi(argv[1]) : 100;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size <= RANKS && calls > 0, "stalls COLLECTIVES [SEED], on up to %d ranks", RANKS);
    for (int i = 0; i < MOST * RANKS; i++) {
        send[i] = value(rank, i);
    }
    for (int call = 0, left = 0, kind = 0, root = 0, count = 1; call < calls; call++, left--) {
        if (left ==
            0) { /* the same again and again runs ahead, until only news of limits lets it go on */
            left = 1 + (int)draw(&state, RUN);
            kind = (int)draw(&state, KINDS);
            root = (int)draw(&state, (uint32_t)size);
            count = 1 + (int)draw(&state, draw(&state, 8) == 0 ? MOST : 1000);
        }
        int n = run(kind, count, root);

        for (int i = 0; i < n; i++) {
            CHECK(recv[i] == wanted(kind, count, root, i), "call %d, kind %d: element %d is wrong",
                  call, kind, i);
        }
    }
    void (*end)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "softhca_stalls_end");
    if (end != NULL) {
        end(); /* MPI_Finalize() waits for the launcher, which the software HCA does not see */
    }
    MPI_Finalize();
    return 0;
}
