/* Handing a job to MPI, in one of the three forms. */

#include "job.h"

static int start_persistent(int rc, MPI_Request *request)
{
    return rc == MPI_SUCCESS ? MPI_Start(request) : rc;
}

#define START(Name, name, ...)                                                                     \
    (form == FORM_BLOCKING ? MPI_##Name(__VA_ARGS__)                                               \
     : form == FORM_NONBLOCKING                                                                    \
         ? MPI_I##name(__VA_ARGS__, request)                                                       \
         : start_persistent(PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, request), request))

static int start_movement(struct job *j, MPI_Comm comm, enum form form, MPI_Request *request)
{
    bool is_root = j->rank == j->root;
    MPI_Datatype type = j->datatype;
    void *in_place_all = j->in_place ? MPI_IN_PLACE : j->send.start;
    void *in_place_root = j->in_place && is_root ? MPI_IN_PLACE : j->send.start;
    void *out_place_root = j->in_place && is_root ? MPI_IN_PLACE : j->recv.start;

    switch (j->which) {
    case JOB_BARRIER:
        return START(Barrier, barrier, comm);
    case JOB_BCAST:
        return START(Bcast, bcast, j->recv.start, j->count, type, j->root, comm);
    case JOB_GATHER:
        return START(Gather, gather, in_place_root, j->count, type, j->recv.start, j->count, type,
                     j->root, comm);
    case JOB_SCATTER:
        return START(Scatter, scatter, j->send.start, j->count, type, out_place_root, j->count,
                     type, j->root, comm);
    case JOB_ALLGATHER:
        return START(Allgather, allgather, in_place_all, j->count, type, j->recv.start, j->count,
                     type, comm);
    default:
        return START(Alltoall, alltoall, in_place_all, j->count, type, j->recv.start, j->count,
                     type, comm);
    }
}

static int start_vector(struct job *j, MPI_Comm comm, enum form form, MPI_Request *request)
{
    bool is_root = j->rank == j->root;
    MPI_Datatype type = j->datatype;
    int mine = j->recv.counts[j->rank];
    void *in_place_all = j->in_place ? MPI_IN_PLACE : j->send.start;
    void *in_place_root = j->in_place && is_root ? MPI_IN_PLACE : j->send.start;
    void *out_place_root = j->in_place && is_root ? MPI_IN_PLACE : j->recv.start;

    switch (j->which) {
    case JOB_GATHERV:
        return START(Gatherv, gatherv, in_place_root, mine, type, j->recv.start, j->recv.counts,
                     j->recv.displs, type, j->root, comm);
    case JOB_SCATTERV:
        return START(Scatterv, scatterv, j->send.start, j->send.counts, j->send.displs, type,
                     out_place_root, j->send.counts[j->rank], type, j->root, comm);
    case JOB_ALLGATHERV:
        return START(Allgatherv, allgatherv, in_place_all, mine, type, j->recv.start,
                     j->recv.counts, j->recv.displs, type, comm);
    case JOB_ALLTOALLV:
        return START(Alltoallv, alltoallv, in_place_all, j->send.counts, j->send.displs, type,
                     j->recv.start, j->recv.counts, j->recv.displs, type, comm);
    default:
        return START(Alltoallw, alltoallw, in_place_all, j->send.counts, j->send.bytes, j->types,
                     j->recv.start, j->recv.counts, j->recv.bytes, j->types, comm);
    }
}

static int start_reduction(struct job *j, MPI_Comm comm, enum form form, MPI_Request *request)
{
    MPI_Datatype type = j->datatype;
    void *in_place_all = j->in_place ? MPI_IN_PLACE : j->send.start;
    void *in_place_root = j->in_place && j->rank == j->root ? MPI_IN_PLACE : j->send.start;

    switch (j->which) {
    case JOB_ALLREDUCE:
        return START(Allreduce, allreduce, in_place_all, j->recv.start, j->count, type, j->op,
                     comm);
    case JOB_REDUCE:
        return START(Reduce, reduce, in_place_root, j->recv.start, j->count, type, j->op, j->root,
                     comm);
    case JOB_REDUCE_SCATTER:
        return START(Reduce_scatter, reduce_scatter, in_place_all, j->recv.start, j->recv.counts,
                     type, j->op, comm);
    case JOB_REDUCE_SCATTER_BLOCK:
        return START(Reduce_scatter_block, reduce_scatter_block, in_place_all, j->recv.start,
                     j->count, type, j->op, comm);
    case JOB_SCAN:
        return START(Scan, scan, in_place_all, j->recv.start, j->count, type, j->op, comm);
    default:
        return START(Exscan, exscan, in_place_all, j->recv.start, j->count, type, j->op, comm);
    }
}

int job_start(struct job *job, MPI_Comm comm, enum form form, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    if (job->which >= JOB_ALLREDUCE) {
        return start_reduction(job, comm, form, request);
    }
    return job->which >= JOB_GATHERV ? start_vector(job, comm, form, request)
                                     : start_movement(job, comm, form, request);
}
