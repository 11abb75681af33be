#include "sizes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/matrix.h"

enum { ELEMENT_MOST = 8 /* bytes: blocks are rounded up to whole elements */ };

/* NULL, or -EINVAL and the like with the reason. */
static uint64_t *make(const char *text, uint32_t ranks, size_t bytes, uint64_t *longest,
                      struct ibshift_error *err)
{
    size_t cells = (size_t)ranks * ranks;
    uint64_t *all = calloc(cells, sizeof(*all));
    int rc = all == NULL ? ibshift_fail(err, -ENOMEM, "no memory for %u ranks", ranks)
                         : matrix_fill(all, ranks, text, bytes, err);

    *longest = 0;
    for (size_t i = 0; rc == 0 && i < cells; i++) {
        *longest = all[i] > *longest ? all[i] : *longest;
    }
    if (*longest > (uint64_t)INT_MAX / ranks - ELEMENT_MOST) {
        rc = ibshift_fail(err, -EINVAL,
                          "%.60s: %llu bytes in the longest block of %u ranks: wants "
                          "places up to %d",
                          text, (unsigned long long)*longest, ranks, INT_MAX);
    }
    if (rc != 0) {
        free(all);
    }
    return rc == 0 ? all : NULL;
}

bool sizes_vary(const struct options *o, const struct collective *c)
{
    return o->matrix != NULL && strcmp(c->name, "MPI_Alltoallv") == 0;
}

int sizes_check(const char *text, int ranks, size_t bytes, char *why, size_t room)
{
    struct ibshift_error err;
    uint64_t longest, *all = make(text, (uint32_t)ranks, bytes, &longest, &err);

    if (all == NULL) {
        snprintf(why, room, "%s", err.text);
    } else if (longest == 0) {
        snprintf(why, room, "%.200s: nobody has anything for another rank", text);
    }
    free(all);
    return all != NULL && longest > 0 ? 0 : -EINVAL;
}

uint64_t *sizes_take(const char *text, MPI_Comm comm, size_t bytes, size_t *longest)
{
    uint64_t *all = NULL, *own, most = 0;
    struct ibshift_error err;
    int rank, ranks;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    own = malloc(2 * (size_t)ranks * sizeof(*own));
    if (rank == 0) {
        all = make(text, (uint32_t)ranks, bytes, &most, &err);
    }
    if (own == NULL || (rank == 0 && all == NULL)) {
        fprintf(stderr, "nbcbench: --matrix: %s\n", own == NULL ? "no memory" : err.text);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Bcast(&most, 1, MPI_UINT64_T, 0, comm);
    MPI_Scatter(all, ranks, MPI_UINT64_T, own, ranks, MPI_UINT64_T, 0, comm);
    MPI_Alltoall(own, 1, MPI_UINT64_T, own + ranks, 1, MPI_UINT64_T, comm);
    free(all);
    *longest = (size_t)most;
    return own;
}
