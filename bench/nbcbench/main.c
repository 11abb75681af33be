#include "nbcbench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int run_size(const struct options *o, const struct collective *c, MPI_Comm comm, size_t size)
{
    struct result result;
    struct bench b;
    int status = bench_open(&b, c, comm, size);

    if (status != 0) {
        fprintf(stderr, "nbcbench: no memory for blocks of %zu bytes\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    status = measure(&b, c, o, &result);
    if (b.rank == 0) {
        report_row(o, &b, c, &result);
        if (status == -EILSEQ) {
            fprintf(stderr, "nbcbench: WRONG DATA: %s, %d ranks, %zu bytes\n", c->name, b.ranks,
                    b.size);
        }
    }
    bench_close(&b);
    return status;
}

static int run_sizes(const struct options *o, const struct collective *c, MPI_Comm comm)
{
    int worst = 0;
    size_t last = 0;

    if (!c->sized) {
        return run_size(o, c, comm, 0);
    }
    for (int i = 0; i < o->size_count; i++) {
        size_t rounded = (o->sizes[i] + c->element - 1) / c->element * c->element;

        if (rounded != last) {
            worst = run_size(o, c, comm, o->sizes[i]) != 0 ? 1 : worst;
        }
        last = rounded;
    }
    return worst;
}

static bool is_wanted(const struct options *o, const struct collective *c)
{
    if (strcmp(o->tests, "all") == 0) {
        return true;
    }
    for (const char *p = o->tests; *p != '\0';) {
        size_t length = strcspn(p, ",");

        if (collective_find(p, length) == c) {
            return true;
        }
        p += length + (p[length] == ',');
    }
    return false;
}

static int run(const struct options *o, int rank)
{
    int wrong = 0;

    for (int ranks = o->ranks_min;; ranks = ranks * 2 < o->ranks_max ? ranks * 2 : o->ranks_max) {
        const struct collective *c;
        MPI_Comm comm;

        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
        for (size_t i = 0; comm != MPI_COMM_NULL && (c = collective_at(i)) != NULL; i++) {
            if (is_wanted(o, c)) {
                wrong |= run_sizes(o, c, comm) != 0;
            }
        }
        if (comm != MPI_COMM_NULL) {
            MPI_Comm_free(&comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (ranks >= o->ranks_max) {
            return wrong;
        }
    }
}

int main(int argc, char **argv)
{
    struct options options;
    int rank, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = options_parse(argc, argv, rank, &options);
    if (status != 0) {
        MPI_Finalize();
        return status == 1 ? 0 : 2;
    }
    if (rank == 0) {
        if (report_open(&options) != 0) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        report_header(&options);
    }
    status = run(&options, rank);
    report_close();
    MPI_Finalize();
    return status;
}
