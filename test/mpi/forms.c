/* All collectives in all forms: layouts, in place, counts, roots, operators, two communicators. */

#include <stdio.h>

#include "job.h"

int main(int argc, char **argv)
{
    static const long bytes[] = {0, 4, 28, 4000};
    enum { ROUNDS = 6 };
    MPI_Comm odd;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, -rank, &odd);
    for (int i = 0; i < 4; i++) {
        check_collectives(MPI_COMM_WORLD, ROUNDS, bytes[i]);
        check_collectives(odd, ROUNDS, bytes[i]);
    }
    MPI_Comm_free(&odd);
    if (rank == 0) {
        printf("17 collectives with %d jobs each\n", 2 * 4 * FORM_COUNT * ROUNDS);
    }
    MPI_Finalize();
    return 0;
}
