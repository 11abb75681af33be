/* All-to-alls from the first call on, and nothing else: alltoalls [BYTES [TIMES]] */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what)
{
    fprintf(stderr, "alltoalls: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    int rank, size, bytes = argc > 1 ? atoi(argv[1]) : 65536, times = argc > 2 ? atoi(argv[2]) : 6;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned char *sent = malloc((size_t)bytes * (size_t)size);
    unsigned char *got = calloc((size_t)bytes, (size_t)size);
    if (bytes < 1 || sent == NULL || got == NULL) {
        fail("no memory");
    }
    for (int i = 0; i < times; i++) {
        for (int b = 0; b < bytes * size; b++) {
            sent[b] = (unsigned char)(rank * 31 + b / bytes * 7 + b + i);
        }
        MPI_Alltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int b = 0; b < bytes * size; b++) {
            if (got[b] !=
                (unsigned char)(b / bytes * 31 + rank * 7 + rank * bytes + b % bytes + i)) {
                fail("wrong data");
            }
        }
    }
    free(sent);
    free(got);
    MPI_Finalize();
    return 0;
}
