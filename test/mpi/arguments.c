/*
 * What a nonblocking or persistent collective was called with goes away while it is under way: the
 * arrays of counts and displacements (libraries that live with Open MPI's own collectives free
 * them), types and operators (MPI allows it). One rank starts last, so that no other has ended.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"

static int rank, size;

static void wait_for_others(int late)
{
    int token = 0;

    if (rank != late) {
        MPI_Send(&token, 1, MPI_INT, late, 0, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < size - 1; i++) {
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void arrays_go(const struct job *job, const struct job_side *side)
{
    size_t bytes = (size_t)job->size * sizeof(int);

    memset(side->counts, 0x55, bytes);
    memset(side->displs, 0x55, bytes);
    memset(side->bytes, 0x55, bytes);
}

/* Where the types of blocks are the program's own, their array stays: Open MPI itself reads it again. */
static void arguments_go(struct job *job, bool is_gapped)
{
    for (int i = 0; i < job->size && is_gapped; i++) {
        MPI_Datatype type = job->types[i];

        MPI_Type_free(&type);
    }
    if (is_gapped) {
        MPI_Type_free(&job->datatype);
    } else {
        memset(job->types, 0x55, (size_t)job->size * sizeof(MPI_Datatype));
    }
    if (job->op != MPI_OP_NULL) {
        MPI_Op_free(&job->op);
    }
    arrays_go(job, &job->send);
    arrays_go(job, &job->recv);
}

static void run(struct job *job, MPI_Comm comm, enum form form, bool is_gapped, int late,
                const char *expected)
{
    MPI_Request request;
    char what[256];

    for (int start = 0; start < (form == FORM_PERSISTENT ? 2 : 1); start++) {
        job_fill(job);
        if (rank == late) {
            wait_for_others(late);
        }
        if (start > 0) {
            MPI_Start(&request);
        } else {
            CHECK(job_start(job, comm, form, &request) == MPI_SUCCESS, "%s failed",
                  job_names[job->which]);
            arguments_go(job, is_gapped);
        }
        if (rank != late) {
            wait_for_others(late);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        job_describe(job, what, sizeof(what));
        CHECK(memcmp(job->recv.memory, expected, job->recv.compared) == 0,
              "%s %s%s, late rank %d: wrong data", form_names[form], what,
              is_gapped ? " with gaps" : "", late);
    }
    if (form == FORM_PERSISTENT) {
        MPI_Request_free(&request);
    }
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
}

static void check_scene(MPI_Comm comm, enum job_collective which, enum form form, bool is_gapped,
                        int late)
{
    MPI_Datatype type = MPI_INT;
    MPI_Op op = MPI_OP_NULL;
    struct job job;
    char *expected;

    if (is_gapped) { /* every other integer of a buffer is nobody's */
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    if (which == JOB_REDUCE_SCATTER) {
        MPI_Op_create(add, 1, &op);
    }
    job = job_of(comm, which, 2, (late + 1) % size, op, type, (uint64_t)late + 1);
    for (int i = 0; i < size && is_gapped; i++) {
        MPI_Type_dup(type, &job.types[i]);
    }
    expected = malloc(job.recv.size);
    CHECK(expected != NULL, "no memory");
    job_fill(&job);
    memcpy(expected, job.recv.memory, job.recv.size);
    job_expect(&job, expected);
    run(&job, comm, form, is_gapped, late, expected);
    free(expected);
    job_free(&job);
}

static void check_scenes(MPI_Comm comm)
{
    static const enum job_collective which[] = {JOB_ALLTOALLV, JOB_ALLTOALLW, JOB_ALLGATHERV,
                                                JOB_GATHERV,   JOB_SCATTERV,  JOB_REDUCE_SCATTER};

    for (int form = FORM_NONBLOCKING; form < FORM_COUNT; form++) {
        for (int late = 0; late < size; late++) {
            for (int i = 0; i < 11; i++) { /* a reduction with gaps is another thing */
                check_scene(comm, which[i / 2], (enum form)form, i % 2 == 1, late);
            }
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm line;
    int open[1] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_scenes(MPI_COMM_WORLD);
    /* Of types, Open MPI itself holds only as many here as there are neighbours. */
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, open, 0, &line);
    check_scenes(line);
    MPI_Comm_free(&line);
    MPI_Finalize();
    return 0;
}
