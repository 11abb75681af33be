/* All-to-alls from the first call on, and nothing else: alltoalls [BYTES [TIMES [FIRST [LENGTH]]]].
 * Those of LENGTH bytes first run among FIRST ranks each: what these have registered is there when
 * they meet the others. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what)
{
    fprintf(stderr, "alltoalls: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void run(MPI_Comm comm, int bytes, int times, unsigned char *sent, unsigned char *got)
{
    int rank, size;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < times; i++) {
        for (int b = 0; b < bytes * size; b++) {
            sent[b] = (unsigned char)(rank * 31 + b / bytes * 7 + b + i);
        }
        MPI_Alltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, comm);
        for (int b = 0; b < bytes * size; b++) {
            if (got[b] !=
                (unsigned char)(b / bytes * 31 + rank * 7 + rank * bytes + b % bytes + i)) {
                fail("wrong data");
            }
        }
    }
}

int main(int argc, char **argv)
{
    int rank, size, bytes = argc > 1 ? atoi(argv[1]) : 65536, times = argc > 2 ? atoi(argv[2]) : 6;
    int first = argc > 3 ? atoi(argv[3]) : 0, length = argc > 4 ? atoi(argv[4]) : bytes;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t most = (size_t)(bytes > length ? bytes : length);
    unsigned char *sent = malloc(most * (size_t)size);
    unsigned char *got = calloc(most, (size_t)size);
    if (bytes < 1 || length < 1 || sent == NULL || got == NULL) {
        fail("no memory");
    }
    if (first > 0) {
        MPI_Comm few;
        MPI_Comm_split(MPI_COMM_WORLD, rank / first, rank, &few);
        run(few, length, times, sent, got);
        MPI_Comm_free(&few);
    }
    run(MPI_COMM_WORLD, bytes, times, sent, got);
    free(sent);
    free(got);
    MPI_Finalize();
    return 0;
}
