/* One row a collective; adding one is adding a row. The counts of those that take one for every rank are equal, so
 * that their columns can be compared with those of their plain sisters. */
#include "nbcbench.h"

#include <string.h>
#include <strings.h>

/* Before Open MPI 5 the persistent collectives carry the prefix of an extension. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

#define OPERATION(name, Name, ...)                                                                 \
    static void name(struct bench *b)                                                              \
    {                                                                                              \
        MPI_##Name(__VA_ARGS__, b->comm);                                                          \
    }                                                                                              \
    static void i##name(struct bench *b, MPI_Request *r)                                           \
    {                                                                                              \
        MPI_I##name(__VA_ARGS__, b->comm, r);                                                      \
    }                                                                                              \
    static void name##_init(struct bench *b, MPI_Request *r)                                       \
    {                                                                                              \
        PERSISTENT(Name)(__VA_ARGS__, b->comm, MPI_INFO_NULL, r);                                  \
    }

#define SENT     b->from, b->count, b->type
#define SENT_V   b->from, b->counts, b->places, b->type
#define SENT_W   b->from, b->counts, b->byte_places, b->types
#define GIVEN    b->to, b->count, b->type
#define GIVEN_V  b->to, b->given_counts, b->places, b->type
#define GIVEN_W  b->to, b->counts, b->byte_places, b->types
#define SUMMED   b->from, b->to, b->count, b->type, MPI_SUM
#define SUMMED_V b->from, b->to, b->counts, b->type, MPI_SUM

OPERATION(bcast, Bcast, SENT, b->root)
OPERATION(scatter, Scatter, SENT, GIVEN, b->root)
OPERATION(gather, Gather, SENT, GIVEN, b->root)
OPERATION(allgather, Allgather, SENT, GIVEN)
OPERATION(alltoall, Alltoall, SENT, GIVEN)
OPERATION(reduce, Reduce, SUMMED, b->root)
OPERATION(allreduce, Allreduce, SUMMED)
OPERATION(reduce_scatter_block, Reduce_scatter_block, SUMMED)
OPERATION(scan, Scan, SUMMED)
OPERATION(exscan, Exscan, SUMMED)
OPERATION(scatterv, Scatterv, SENT_V, GIVEN, b->root)
OPERATION(gatherv, Gatherv, SENT, GIVEN_V, b->root)
OPERATION(allgatherv, Allgatherv, SENT, GIVEN_V)
OPERATION(alltoallv, Alltoallv, SENT_V, GIVEN_V)
OPERATION(alltoallw, Alltoallw, SENT_W, GIVEN_W)
OPERATION(reduce_scatter, Reduce_scatter, SUMMED_V)

OPERATION(neighbor_allgather, Neighbor_allgather, SENT, GIVEN)
OPERATION(neighbor_alltoall, Neighbor_alltoall, SENT, GIVEN)

static void barrier(struct bench *b)
{
    MPI_Barrier(b->comm);
}

static void ibarrier(struct bench *b, MPI_Request *r)
{
    MPI_Ibarrier(b->comm, r);
}

static void barrier_init(struct bench *b, MPI_Request *r)
{
    PERSISTENT(Barrier)(b->comm, MPI_INFO_NULL, r);
}

static bool bcast_is_right(struct bench *b)
{
    return block_is(b, b->from, b->root, 0);
}

static bool scatter_is_right(struct bench *b)
{
    return b->to == MPI_IN_PLACE || block_is(b, b->to, b->root, b->rank);
}

/* Block k came from rank k, which had it for rank `to`. */
static bool all_blocks_are(struct bench *b, int to)
{
    for (int from = 0; from < b->ranks; from++) {
        if (!block_is(b, (char *)b->to + (size_t)from * b->block_space, from, to)) {
            return false;
        }
    }
    return true;
}

static bool gather_is_right(struct bench *b)
{
    return b->rank != b->root || all_blocks_are(b, 0);
}

static bool allgather_is_right(struct bench *b)
{
    return all_blocks_are(b, 0);
}

static bool alltoall_is_right(struct bench *b)
{
    return all_blocks_are(b, b->rank);
}

static bool alltoallv_is_right(struct bench *b)
{
    struct bench block = *b;

    for (int from = 0; from < b->ranks; from++) {
        block.count = b->given_counts[from];
        block.size = b->size / (size_t)b->count * (size_t)block.count;
        if (!block_is(&block, (char *)b->to + (size_t)from * b->block_space, from, b->rank)) {
            return false;
        }
    }
    return true;
}

static bool reduce_is_right(struct bench *b)
{
    return b->rank != b->root || sums_are(b, b->to, 0, b->ranks, 0);
}

static bool allreduce_is_right(struct bench *b)
{
    return sums_are(b, b->to, 0, b->ranks, 0);
}

static bool reduce_scatter_is_right(struct bench *b)
{
    return sums_are(b, b->to, 0, b->ranks, (size_t)b->rank * (size_t)b->count);
}

static bool scan_is_right(struct bench *b)
{
    return sums_are(b, b->to, 0, b->rank + 1, 0);
}

static bool exscan_is_right(struct bench *b)
{
    return b->rank == 0 || sums_are(b, b->to, 0, b->rank, 0);
}

/* What comes in on one side of a dimension was sent to the other. */
static bool neighbors_are_right(struct bench *b, bool is_one_for_all)
{
    for (int i = 0; i < b->partners; i++) {
        int sides[2];

        MPI_Cart_shift(b->comm, i / 2, 1, &sides[0], &sides[1]);
        if (!block_is(b, (char *)b->to + (size_t)i * b->block_space, sides[i % 2],
                      is_one_for_all ? 0 : i ^ 1)) {
            return false;
        }
    }
    return true;
}

static bool neighbor_allgather_is_right(struct bench *b)
{
    return neighbors_are_right(b, true);
}

static bool neighbor_alltoall_is_right(struct bench *b)
{
    return neighbors_are_right(b, false);
}

#define CALLS(name) name, i##name, name##_init
#define ALL         true
#define ONE         false
/* clang-format off */
static const struct collective collectives[] = {
    {"MPI_Barrier", "Barrier", false, false, ONE, ONE, PLACE_NONE, CALLS(barrier), NULL},
    {"MPI_Bcast", "Broadcast", true, false, ONE, ONE, PLACE_NONE, CALLS(bcast), bcast_is_right},
    {"MPI_Scatter", "Scatter", true, false, ALL, ONE, PLACE_RECV_AT_ROOT, CALLS(scatter), scatter_is_right},
    {"MPI_Gather", "Gather", true, false, ONE, ALL, PLACE_SEND_AT_ROOT, CALLS(gather), gather_is_right},
    {"MPI_Allgather", "Allgather", true, false, ONE, ALL, PLACE_SEND, CALLS(allgather), allgather_is_right},
    {"MPI_Alltoall", "All-to-All Personalized Exchange", true, false, ALL, ALL, PLACE_SEND, CALLS(alltoall),
     alltoall_is_right},
    {"MPI_Reduce", "Reduce", true, true, ONE, ONE, PLACE_SEND_AT_ROOT, CALLS(reduce), reduce_is_right},
    {"MPI_Allreduce", "Allreduce", true, true, ONE, ONE, PLACE_SEND, CALLS(allreduce), allreduce_is_right},
    {"MPI_Reduce_scatter_block", "Reduce_scatter_block", true, true, ALL, ONE, PLACE_SEND,
     CALLS(reduce_scatter_block), reduce_scatter_is_right},
    {"MPI_Scan", "Scan", true, true, ONE, ONE, PLACE_SEND, CALLS(scan), scan_is_right},
    {"MPI_Exscan", "Exscan", true, true, ONE, ONE, PLACE_SEND, CALLS(exscan), exscan_is_right},
    {"MPI_Scatterv", "Scatterv", true, false, ALL, ONE, PLACE_RECV_AT_ROOT, CALLS(scatterv), scatter_is_right},
    {"MPI_Gatherv", "Gatherv", true, false, ONE, ALL, PLACE_SEND_AT_ROOT, CALLS(gatherv), gather_is_right},
    {"MPI_Allgatherv", "Allgatherv", true, false, ONE, ALL, PLACE_SEND, CALLS(allgatherv), allgather_is_right},
    {"MPI_Alltoallv", "All-to-Allv Personalized Exchange", true, false, ALL, ALL, PLACE_SEND, CALLS(alltoallv),
     alltoallv_is_right},
    {"MPI_Alltoallw", "All-to-Allw Personalized Exchange", true, false, ALL, ALL, PLACE_SEND, CALLS(alltoallw),
     alltoall_is_right},
    {"MPI_Reduce_scatter", "Reduce_scatter", true, true, ALL, ONE, PLACE_SEND, CALLS(reduce_scatter),
     reduce_scatter_is_right},
    {"MPI_Neighbor_allgather", "Neighborhood Allgather", true, false, ONE, ALL, PLACE_NONE, CALLS(neighbor_allgather),
     neighbor_allgather_is_right},
    {"MPI_Neighbor_alltoall", "Neighborhood Alltoall", true, false, ALL, ALL, PLACE_NONE, CALLS(neighbor_alltoall),
     neighbor_alltoall_is_right},
};
/* clang-format on */

const struct collective *collective_at(size_t place)
{
    return place < sizeof(collectives) / sizeof(collectives[0]) ? &collectives[place] : NULL;
}

const struct collective *collective_find(const char *name, size_t length)
{
    size_t skip = length > 4 && strncasecmp(name, "MPI_", 4) == 0
                      ? 0
                      : 4; /* "reduce", as ibshift's tools say */
    const struct collective *c;

    for (size_t i = 0; (c = collective_at(i)) != NULL; i++) {
        if (strlen(c->name + skip) == length && strncasecmp(c->name + skip, name, length) == 0) {
            return c;
        }
    }
    return NULL;
}
