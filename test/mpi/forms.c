/* All collectives in all forms: layouts, in place, counts, roots, operators, two communicators. */

#include "colls.h"

#include <stdio.h>

static void check_layout(MPI_Comm comm, enum layout_kind kind, int *checked)
{
    static const int counts[] = {0, 1, 7, 1000};
    struct layout layout = layout_create(kind);
    MPI_Op user = compose_op(&layout);
    int size;

    MPI_Comm_size(comm, &size);
    for (int form = 0; form < FORM_COUNT; form++) {
        for (int i = 0; i < 4; i++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                struct how how = {.form = (enum form)form,
                                  .layout = &layout,
                                  .count = counts[i],
                                  .root = (i + form) % size,
                                  .in_place = in_place,
                                  .op = kind == LAYOUT_INT && i % 2 == 0 ? MPI_SUM : user};
                check_collectives(comm, &how);
                ++*checked;
            }
        }
    }
    MPI_Op_free(&user);
    layout_free(&layout);
}

int main(int argc, char **argv)
{
    MPI_Comm odd;
    int rank, checked = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, -rank, &odd);
    for (int kind = 0; kind < LAYOUT_COUNT; kind++) {
        check_layout(MPI_COMM_WORLD, (enum layout_kind)kind, &checked);
        check_layout(odd, (enum layout_kind)kind, &checked);
    }
    MPI_Comm_free(&odd);
    if (rank == 0) {
        printf("17 collectives in %d ways\n", checked);
    }
    MPI_Finalize();
    return 0;
}
