/*
 * A pencil-decomposed 3D FFT as programs do it that let MPI do the transposes: ranks stand on a grid of two dimensions, each has
 * whole lines along one axis, and two calls of alltoallw on subarrays make the lines of the next axis whole.
 *     pencils N0 N1 N2 FORM
 * The input is a sum of three waves, whose spectrum is known. Prints a digest of all bits of it, and fails when it is wrong or
 * the way back does not lead to the input.
 */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { AXES = 3, WAVES = 3 };

static const int wave_of[WAVES][AXES] = {{1, 0, 2}, {0, 3, 1}, {5, 2, 0}};

struct pencil {
    int start[AXES], size[AXES]; /* this rank's part of the whole */
    double complex *at;
};

/* One step from pencils along one axis to those along another, and back. */
struct transpose {
    MPI_Comm comm;
    const struct pencil *sides[2];
    MPI_Datatype *types[2];
    int *counts, *displs;
    MPI_Request request[2]; /* of persistent calls: there and back */
};

static int cut(int length, int parts, int part)
{
    return (int)((long)length * part / parts);
}

static size_t volume(const int size[AXES])
{
    return (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
}

static struct pencil pencil_make(const int whole[AXES], int along, const int dims[2],
                                 const int place[2])
{
    struct pencil pencil;
    int which = 0;

    for (int axis = 0; axis < AXES; axis++) {
        int parts = 1, part = 0;

        if (axis != along) {
            parts = dims[which];
            part = place[which++];
        }
        pencil.start[axis] = cut(whole[axis], parts, part);
        pencil.size[axis] = cut(whole[axis], parts, part + 1) - pencil.start[axis];
    }
    pencil.at = malloc((volume(pencil.size) + 1) * sizeof(double complex));
    CHECK(pencil.at != NULL, "no memory");
    return pencil;
}

/* A subarray for each rank: what it has of this pencil, cut along the axis. Empty ones have no bytes, but MPI wants a type. */
static void cut_types(const struct pencil *pencil, int axis, int parts, MPI_Datatype *types,
                      int *counts)
{
    for (int part = 0; part < parts; part++) {
        int size[AXES], start[AXES] = {0};

        memcpy(size, pencil->size, sizeof(size));
        start[axis] = cut(pencil->size[axis], parts, part);
        size[axis] = cut(pencil->size[axis], parts, part + 1) - start[axis];
        counts[part] = volume(size) > 0;
        if (counts[part] == 0) {
            MPI_Type_dup(MPI_C_DOUBLE_COMPLEX, &types[part]);
            continue;
        }
        MPI_Type_create_subarray(AXES, pencil->size, size, start, MPI_ORDER_C, MPI_C_DOUBLE_COMPLEX,
                                 &types[part]);
        MPI_Type_commit(&types[part]);
    }
}

static struct transpose transpose_make(MPI_Comm comm, const struct pencil *from, int whole_before,
                                       const struct pencil *to, int whole_after)
{
    struct transpose transpose = {
        .comm = comm, .sides = {from, to}, .request = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    int ranks;

    MPI_Comm_size(comm, &ranks);
    transpose.counts = calloc(3 * (size_t)ranks, sizeof(int));
    CHECK(transpose.counts != NULL, "no memory");
    transpose.displs = transpose.counts + 2 * ranks;
    for (int side = 0; side < 2; side++) {
        transpose.types[side] = malloc((size_t)ranks * sizeof(MPI_Datatype));
        CHECK(transpose.types[side] != NULL, "no memory");
        cut_types(transpose.sides[side], side == 0 ? whole_before : whole_after, ranks,
                  transpose.types[side], transpose.counts + side * ranks);
    }
    return transpose;
}

static void transpose_run(struct transpose *transpose, enum form form, bool back)
{
    const struct pencil *from = transpose->sides[back], *to = transpose->sides[!back];
    MPI_Request once = MPI_REQUEST_NULL,
                *request = form == FORM_PERSISTENT ? &transpose->request[back] : &once;
    int ranks;

    MPI_Comm_size(transpose->comm, &ranks);
#define ARGUMENTS                                                                                  \
    from->at, transpose->counts + back *ranks, transpose->displs, transpose->types[back], to->at,  \
        transpose->counts + !back * ranks, transpose->displs, transpose->types[!back],             \
        transpose->comm
    if (form == FORM_BLOCKING) {
        MPI_Alltoallw(ARGUMENTS);
        return;
    }
    if (form == FORM_NONBLOCKING) {
        MPI_Ialltoallw(ARGUMENTS, request);
    } else {
        if (*request == MPI_REQUEST_NULL) {
            PERSISTENT(Alltoallw)(ARGUMENTS, MPI_INFO_NULL, request);
        }
        MPI_Start(request);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void transpose_free(struct transpose *transpose)
{
    int ranks;

    MPI_Comm_size(transpose->comm, &ranks);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < ranks; i++) {
            MPI_Type_free(&transpose->types[side][i]);
        }
        free(transpose->types[side]);
        if (transpose->request[side] != MPI_REQUEST_NULL) {
            MPI_Request_free(&transpose->request[side]);
        }
    }
    free(transpose->counts);
}

/* Cooley and Tukey's, by the least factor of n: from `in`, each stride-th, to n in a row. */
static void fft(const double complex *in, double complex *out, int n, int stride, int sign)
{
    int factor = 2;

    if (n == 1) {
        *out = *in;
        return;
    }
    while (n % factor != 0) {
        factor++;
    }
    int rest = n / factor;
    double complex part[factor];

    for (int i = 0; i < factor; i++) {
        fft(in + i * stride, out + i * rest, rest, stride * factor, sign);
    }
    for (int k = 0; k < rest; k++) {
        for (int i = 0; i < factor; i++) {
            part[i] = out[i * rest + k];
        }
        for (int j = 0; j < factor; j++) {
            double complex sum = 0;

            for (int i = 0; i < factor; i++) {
                sum += part[i] *
                       cexp(sign * 2 * M_PI * I * (double)((long)i * (j * rest + k) % n) / n);
            }
            out[j * rest + k] = sum;
        }
    }
}

/* All lines of the pencil along the axis that is whole. */
static void transform(const struct pencil *pencil, int axis, int sign)
{
    int n = pencil->size[axis], stride = 1, outer = 1;
    double complex *line = malloc((size_t)n * sizeof(*line));

    CHECK(line != NULL, "no memory");
    for (int i = 0; i < AXES; i++) {
        stride *= i > axis ? pencil->size[i] : 1;
        outer *= i < axis ? pencil->size[i] : 1;
    }
    for (int i = 0; i < outer * stride; i++) {
        double complex *first =
            pencil->at + (size_t)(i / stride) * (size_t)(n * stride) + i % stride;

        fft(first, line, n, stride, sign);
        for (int k = 0; k < n; k++) {
            first[(size_t)k * (size_t)stride] = line[k];
        }
    }
    free(line);
}

static double complex waves_at(const int whole[AXES], const int at[AXES])
{
    double complex sum = 0;

    for (int w = 0; w < WAVES; w++) {
        double phase = 0;

        for (int axis = 0; axis < AXES; axis++) {
            phase += (double)(wave_of[w][axis] * at[axis] % whole[axis]) / whole[axis];
        }
        sum += (w + 1) * cexp(2 * M_PI * I * phase);
    }
    return sum;
}

static double complex spectrum_at(const int whole[AXES], const int at[AXES])
{
    for (int w = 0; w < WAVES; w++) {
        if (at[0] == wave_of[w][0] && at[1] == wave_of[w][1] && at[2] == wave_of[w][2]) {
            return (w + 1) * (double)volume(whole);
        }
    }
    return 0;
}

/* Fills the pencil, or says how far it is from what it should be. */
static double each(const struct pencil *pencil, const int whole[AXES], bool fills,
                   double complex (*value)(const int whole[AXES], const int at[AXES]))
{
    double most = 0;
    size_t i = 0;

    for (int x = 0; x < pencil->size[0]; x++) {
        for (int y = 0; y < pencil->size[1]; y++) {
            for (int z = 0; z < pencil->size[2]; z++, i++) {
                int at[AXES] = {pencil->start[0] + x, pencil->start[1] + y, pencil->start[2] + z};
                double complex right = value(whole, at);

                if (fills) {
                    pencil->at[i] = right;
                } else {
                    most = fmax(most, cabs(pencil->at[i] - right));
                }
            }
        }
    }
    return most;
}

/* Of all bits, with their ranks: the same however the data has come. */
static uint64_t digest(const struct pencil *pencil)
{
    const unsigned char *bytes = (const unsigned char *)pencil->at;
    uint64_t own = 14695981039346656037u, all;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < volume(pencil->size) * sizeof(double complex); i++) {
        own = (own ^ bytes[i]) * 1099511628211u;
    }
    own *= 2 * (uint64_t)rank + 1;
    MPI_Allreduce(&own, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void go_there(struct pencil pencil[AXES], struct transpose step[2], const int whole[AXES],
                     enum form form)
{
    double error;

    (void)each(&pencil[2], whole, true, waves_at);
    transform(&pencil[2], 2, -1);
    transpose_run(&step[0], form, false);
    transform(&pencil[1], 1, -1);
    transpose_run(&step[1], form, false);
    transform(&pencil[0], 0, -1);
    error = each(&pencil[0], whole, false, spectrum_at) / (double)volume(whole);
    CHECK(error < 1e-12, "the spectrum is wrong by %g", error);
}

static void come_back(struct pencil pencil[AXES], struct transpose step[2], const int whole[AXES],
                      enum form form)
{
    double error;

    transform(&pencil[0], 0, 1);
    transpose_run(&step[1], form, true);
    transform(&pencil[1], 1, 1);
    transpose_run(&step[0], form, true);
    transform(&pencil[2], 2, 1);
    for (size_t i = 0; i < volume(pencil[2].size); i++) {
        pencil[2].at[i] /= (double)volume(whole);
    }
    error = each(&pencil[2], whole, false, waves_at);
    CHECK(error < 1e-12, "the way back ends %g from the input", error);
}

int main(int argc, char **argv)
{
    int whole[AXES], dims[2] = {0, 0}, periods[2] = {0, 0}, place[2],
                     remain[2][2] = {{0, 1}, {1, 0}};
    struct pencil pencil[AXES];
    struct transpose step[2];
    enum form form = FORM_BLOCKING;
    MPI_Comm grid, line[2];
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 5, "usage: pencils N0 N1 N2 FORM");
    for (int axis = 0; axis < AXES; axis++) {
        whole[axis] = atoi(argv[1 + axis]);
        CHECK(whole[axis] > 5, "the waves do not fit a length of %s", argv[1 + axis]);
    }
    while (form < FORM_COUNT && strcmp(form_names[form], argv[4]) != 0) {
        form++;
    }
    CHECK(form < FORM_COUNT, "no form %s", argv[4]);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, 2, place);
    for (int i = 0; i < 2; i++) {
        MPI_Cart_sub(grid, remain[i], &line[i]);
    }
    for (int axis = 0; axis < AXES; axis++) { /* along axis 2, 1, 0 */
        pencil[axis] = pencil_make(whole, axis, dims, place);
    }
    /* Along 2 axis 1 is cut by the second dimension, along 1 axis 2; along 1 axis 0 by the first, along 0 axis 1. */
    step[0] = transpose_make(line[0], &pencil[2], 2, &pencil[1], 1);
    step[1] = transpose_make(line[1], &pencil[1], 1, &pencil[0], 0);
    for (int round = 0; round < 3; round++) {
        go_there(pencil, step, whole, form);
        uint64_t bits = digest(&pencil[0]);
        if (rank == 0) {
            printf("grid %d x %d, round %d: digest %016llx\n", dims[0], dims[1], round,
                   (unsigned long long)bits);
        }
        come_back(pencil, step, whole, form);
    }
    for (int i = 0; i < 2; i++) {
        transpose_free(&step[i]);
        MPI_Comm_free(&line[i]);
    }
    for (int axis = 0; axis < AXES; axis++) {
        free(pencil[axis].at);
    }
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
