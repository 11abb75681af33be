/*
 * A buffer is unmapped and another one mapped at its address, again and again, between
 * collectives that register it: a registration that outlives its mapping would move old bytes.
 */
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { LENGTH = 1 << 20, ROUNDS = 40 };

static unsigned char *map(void *at)
{
    void *p = mmap(at, LENGTH, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);
    CHECK(p != MAP_FAILED, "mmap");
    return p;
}

/* Short enough for a tape, somewhere else in that memory each time. */
static void check_short(int *data, int rank)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 8; i++) {
        data[i] = rank * 1000 + i;
    }
    MPI_Allreduce(MPI_IN_PLACE, data, 8, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 8; i++) {
        CHECK(data[i] == size * i + 500 * size * (size - 1), "sum %d is %d", i, data[i]);
    }
}

int main(int argc, char **argv)
{
    int rank;
    unsigned char *buffer = NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++) {
        buffer = map(buffer);
        memset(buffer, rank == 0 ? round + 1 : 0xee, LENGTH);
        MPI_Bcast(buffer, LENGTH, MPI_BYTE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < LENGTH; i++) {
            CHECK(buffer[i] == round + 1, "round %d, rank %d: byte %d is %d", round, rank, i,
                  buffer[i]);
        }
        check_short((int *)(void *)buffer + round, rank);
        CHECK(munmap(buffer, LENGTH) == 0, "munmap");
    }
    MPI_Finalize();
    return 0;
}
