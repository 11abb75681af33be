/*
 * FFTW's transforms over MPI, whose transposes are MPI_Alltoall and MPI_Alltoallv where a plan may destroy its input, but for a few
 * from rank to rank: two and three dimensions, there and back, with the output left transposed, and a transpose by itself. Plans
 * are estimated, not measured, so they are the same each time.
 *     fftw N0 N1 N2
 * Each spectrum is compared with the one that FFTW computes on one rank. Prints a digest of the transposed bits.
 */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

struct part {
    ptrdiff_t rows, first;             /* of the input, cut along the first dimension */
    ptrdiff_t rows_after, first_after; /* of the transposed output, along the second */
    fftw_complex *at, *spectrum;
};

static double complex input_at(size_t i)
{
    return sin(0.7 * (double)i) + I * cos(1.3 * (double)(i % 101));
}

static uint64_t digest(uint64_t before, const void *memory, size_t size)
{
    const unsigned char *bytes = memory;

    for (size_t i = 0; i < size; i++) {
        before = (before ^ bytes[i]) * 1099511628211u;
    }
    return before;
}

/* The whole transform on this rank alone. */
static fftw_complex *spectrum(int dimensions, const int *n, size_t volume)
{
    fftw_complex *all = fftw_alloc_complex(volume);
    fftw_plan plan = fftw_plan_dft(dimensions, n, all, all, FFTW_FORWARD, FFTW_ESTIMATE);

    for (size_t i = 0; i < volume; i++) {
        all[i] = input_at(i);
    }
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    return all;
}

/* Rows of the second dimension come first, then the first one. */
static double compare(const struct part *part, const fftw_complex *right, size_t n0, size_t n1,
                      size_t depth)
{
    double most = 0;
    size_t i = 0;

    for (size_t y = (size_t)part->first_after; y < (size_t)(part->first_after + part->rows_after);
         y++) {
        for (size_t x = 0; x < n0; x++) {
            for (size_t z = 0; z < depth; z++) {
                most = fmax(most, cabs(part->spectrum[i++] - right[(x * n1 + y) * depth + z]));
            }
        }
    }
    return most;
}

static void check_transform(int dimensions, const int *n)
{
    ptrdiff_t wide[3] = {n[0], n[1], n[2]};
    size_t depth = dimensions == 3 ? (size_t)n[2] : 1, volume = (size_t)n[0] * (size_t)n[1] * depth;
    struct part part;
    ptrdiff_t room =
        fftw_mpi_local_size_transposed(dimensions, wide, MPI_COMM_WORLD, &part.rows, &part.first,
                                       &part.rows_after, &part.first_after);
    fftw_complex *right = spectrum(dimensions, n, volume);
    fftw_plan there, back;
    double error;

    part.at = fftw_alloc_complex((size_t)room);
    part.spectrum = fftw_alloc_complex((size_t)room);
    there =
        fftw_mpi_plan_dft(dimensions, wide, part.at, part.spectrum, MPI_COMM_WORLD, FFTW_FORWARD,
                          FFTW_ESTIMATE | FFTW_DESTROY_INPUT | FFTW_MPI_TRANSPOSED_OUT);
    back =
        fftw_mpi_plan_dft(dimensions, wide, part.spectrum, part.at, MPI_COMM_WORLD, FFTW_BACKWARD,
                          FFTW_ESTIMATE | FFTW_DESTROY_INPUT | FFTW_MPI_TRANSPOSED_IN);
    CHECK(there != NULL && back != NULL, "FFTW has no plan for %d dimensions", dimensions);
    for (int round = 0; round < 3; round++) {
        size_t own = (size_t)part.rows * (size_t)n[1] * depth,
               before = (size_t)part.first * (size_t)n[1] * depth;

        for (size_t i = 0; i < own; i++) {
            part.at[i] = input_at(before + i);
        }
        fftw_execute(there);
        error = compare(&part, right, (size_t)n[0], (size_t)n[1], depth);
        CHECK(error < 1e-9 * (double)volume, "%d dimensions: the spectrum is wrong by %g",
              dimensions, error);
        fftw_execute(back);
        for (size_t i = 0; i < own; i++) {
            error = cabs(part.at[i] / (double)volume - input_at(before + i));
            CHECK(error < 1e-12, "%d dimensions: the way back ends %g from the input", dimensions,
                  error);
        }
    }
    fftw_destroy_plan(there);
    fftw_destroy_plan(back);
    fftw_free(part.at);
    fftw_free(part.spectrum);
    fftw_free(right);
}

static uint64_t check_transpose(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t depth, uint64_t bits)
{
    ptrdiff_t n[2] = {rows, columns};
    struct part part;
    ptrdiff_t room = fftw_mpi_local_size_many_transposed(
        2, n, depth, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, MPI_COMM_WORLD, &part.rows,
        &part.first, &part.rows_after, &part.first_after);
    double *from = fftw_alloc_real((size_t)room), *to = fftw_alloc_real((size_t)room);
    fftw_plan plan = fftw_mpi_plan_many_transpose(rows, columns, depth, FFTW_MPI_DEFAULT_BLOCK,
                                                  FFTW_MPI_DEFAULT_BLOCK, from, to, MPI_COMM_WORLD,
                                                  FFTW_ESTIMATE | FFTW_DESTROY_INPUT);

    CHECK(plan != NULL, "FFTW has no plan for a transpose");
    for (ptrdiff_t i = 0; i < part.rows * columns * depth; i++) {
        from[i] = (double)(part.first * columns * depth + i);
    }
    fftw_execute(plan);
    for (ptrdiff_t y = 0, i = 0; y < part.rows_after; y++) {
        for (ptrdiff_t x = 0; x < rows; x++) {
            for (ptrdiff_t z = 0; z < depth; z++, i++) {
                double right = (double)((x * columns + part.first_after + y) * depth + z);

                CHECK(to[i] == right, "a transpose has %.0f where %.0f belongs", to[i], right);
            }
        }
    }
    bits = digest(bits, to, (size_t)(part.rows_after * rows * depth) * sizeof(double));
    fftw_destroy_plan(plan);
    fftw_free(from);
    fftw_free(to);
    return bits;
}

int main(int argc, char **argv)
{
    int n[3], rank;
    uint64_t bits = 14695981039346656037u, all;

    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    CHECK(argc == 4, "usage: fftw N0 N1 N2");
    for (int i = 0; i < 3; i++) {
        n[i] = atoi(argv[1 + i]);
        CHECK(n[i] > 0, "no length %s", argv[1 + i]);
    }
    check_transform(2, n);
    check_transform(3, n);
    bits = check_transpose(n[0], n[1], n[2], bits);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bits *= 2 * (uint64_t)rank + 1;
    MPI_Allreduce(&bits, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("digest %016llx\n", (unsigned long long)all);
    }
    fftw_mpi_cleanup();
    MPI_Finalize();
    return 0;
}
