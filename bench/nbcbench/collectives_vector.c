/* The collectives that take a count for every rank; the counts are equal, so that the columns can
 * be compared with those of their plain sisters. */
#include "nbcbench.h"

static void scatterv(struct bench *b)
{
    MPI_Scatterv(b->send, b->counts, b->places, MPI_BYTE, b->recv, b->count, MPI_BYTE, 0, b->comm);
}

static void iscatterv(struct bench *b, MPI_Request *r)
{
    MPI_Iscatterv(b->send, b->counts, b->places, MPI_BYTE, b->recv, b->count, MPI_BYTE, 0, b->comm,
                  r);
}

static void gatherv(struct bench *b)
{
    MPI_Gatherv(b->send, b->count, MPI_BYTE, b->recv, b->counts, b->places, MPI_BYTE, 0, b->comm);
}

static void igatherv(struct bench *b, MPI_Request *r)
{
    MPI_Igatherv(b->send, b->count, MPI_BYTE, b->recv, b->counts, b->places, MPI_BYTE, 0, b->comm,
                 r);
}

static void allgatherv(struct bench *b)
{
    MPI_Allgatherv(b->send, b->count, MPI_BYTE, b->recv, b->counts, b->places, MPI_BYTE, b->comm);
}

static void iallgatherv(struct bench *b, MPI_Request *r)
{
    MPI_Iallgatherv(b->send, b->count, MPI_BYTE, b->recv, b->counts, b->places, MPI_BYTE, b->comm,
                    r);
}

static void alltoallv(struct bench *b)
{
    MPI_Alltoallv(b->send, b->counts, b->places, MPI_BYTE, b->recv, b->counts, b->places, MPI_BYTE,
                  b->comm);
}

static void ialltoallv(struct bench *b, MPI_Request *r)
{
    MPI_Ialltoallv(b->send, b->counts, b->places, MPI_BYTE, b->recv, b->counts, b->places, MPI_BYTE,
                   b->comm, r);
}

static void alltoallw(struct bench *b)
{
    MPI_Alltoallw(b->send, b->counts, b->places, b->types, b->recv, b->counts, b->places, b->types,
                  b->comm);
}

static void ialltoallw(struct bench *b, MPI_Request *r)
{
    MPI_Ialltoallw(b->send, b->counts, b->places, b->types, b->recv, b->counts, b->places, b->types,
                   b->comm, r);
}

static void reduce_scatter(struct bench *b)
{
    MPI_Reduce_scatter(b->send, b->recv, b->counts, MPI_INT, MPI_SUM, b->comm);
}

static void ireduce_scatter(struct bench *b, MPI_Request *r)
{
    MPI_Ireduce_scatter(b->send, b->recv, b->counts, MPI_INT, MPI_SUM, b->comm, r);
}

const struct collective collectives_vector[COLLECTIVES_VECTOR] = {
    {"MPI_Scatterv", 1, true, true, false, scatterv, iscatterv, scatter_is_right},
    {"MPI_Gatherv", 1, true, false, true, gatherv, igatherv, gather_is_right},
    {"MPI_Allgatherv", 1, true, false, true, allgatherv, iallgatherv, allgather_is_right},
    {"MPI_Alltoallv", 1, true, true, true, alltoallv, ialltoallv, alltoall_is_right},
    {"MPI_Alltoallw", 1, true, true, true, alltoallw, ialltoallw, alltoall_is_right},
    {"MPI_Reduce_scatter", sizeof(int), true, true, false, reduce_scatter, ireduce_scatter,
     reduce_scatter_is_right},
};
