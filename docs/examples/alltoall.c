/* An all-to-all, checked and timed: mpicc -o alltoall alltoall.c; ibshift-run -np 4 --explain ./alltoall [BYTES of a block] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* The first calls find plans and connect: they are not timed. With a fabric file the order is searched once each rank has
 * sent SEARCH bytes times the number of ranks to each other one. */
enum { WARM_UP = 5, SEARCH = 5000, CALLS = 20 };

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0, all_wrong, ints = argc > 1 ? atoi(argv[1]) / (int)sizeof(int) : 256;
    int warm_up;
    double begun = 0, us, slowest;

    if (argc > 2 || ints < 1) {
        fprintf(stderr, "usage: alltoall [BYTES of a block, 4 or more]\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *out = malloc(sizeof(int) * (size_t)ints * (size_t)ranks);
    int *in = malloc(sizeof(int) * (size_t)ints * (size_t)ranks);
    for (int i = 0; i < ints * ranks; i++) {
        out[i] = rank * ranks + i / ints; /* who sends, and to whom */
    }
    warm_up = WARM_UP + SEARCH * ranks / (ints * (int)sizeof(int));
    for (int call = 0; call < warm_up + CALLS; call++) {
        if (call == warm_up) {
            begun = MPI_Wtime();
        }
        MPI_Alltoall(out, ints, MPI_INT, in, ints, MPI_INT, MPI_COMM_WORLD);
    }
    us = (MPI_Wtime() - begun) / CALLS * 1e6;
    for (int i = 0; i < ints * ranks; i++) {
        wrong += in[i] != i / ints * ranks + rank;
    }
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, blocks of %zu bytes: %.1f us a call, %d wrong\n", ranks,
               ints * sizeof(int), slowest, all_wrong);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return wrong != 0;
}
