#ifndef IBSHIFT_TEST_MPI_JOB_H
#define IBSHIFT_TEST_MPI_JOB_H

/*
 * One collective call drawn from a seed: which one, types, counts, places, root, operator. All
 * ranks of the communicator draw the same job; job_fill() gives each its own data, the same each
 * time, so that two runs of one job can be compared byte by byte.
 */

#include "check.h"
#include "data.h"

#include <stdint.h>

#define JOB_COLLECTIVES(X)                                                                         \
    X(BARRIER, barrier)                                                                            \
    X(BCAST, bcast)                                                                                \
    X(GATHER, gather)                                                                              \
    X(SCATTER, scatter)                                                                            \
    X(ALLGATHER, allgather)                                                                        \
    X(ALLTOALL, alltoall)                                                                          \
    X(GATHERV, gatherv)                                                                            \
    X(SCATTERV, scatterv)                                                                          \
    X(ALLGATHERV, allgatherv)                                                                      \
    X(ALLTOALLV, alltoallv)                                                                        \
    X(ALLTOALLW, alltoallw)                                                                        \
    X(ALLREDUCE, allreduce)                                                                        \
    X(REDUCE, reduce)                                                                              \
    X(REDUCE_SCATTER, reduce_scatter)                                                              \
    X(REDUCE_SCATTER_BLOCK, reduce_scatter_block)                                                  \
    X(SCAN, scan)                                                                                  \
    X(EXSCAN, exscan)

#define JOB_ENUM(upper, lower) JOB_##upper,
enum job_collective { JOB_COLLECTIVES(JOB_ENUM) JOB_COLLECTIVE_COUNT };
extern const char *const job_names[JOB_COLLECTIVE_COUNT];

/* Blocks of one direction. */
struct job_side {
    int *counts, *displs, *bytes; /* displs in elements, the same in bytes */
    char *memory;                 /* margins, blocks and holes */
    char *start;                  /* what MPI gets */
    size_t size;                  /* of memory */
    size_t compared;              /* bytes of memory from its start that the result says */
};

struct job {
    uint64_t seed;
    enum job_collective which;
    int type; /* index of the types below */
    int count, root;
    bool in_place;
    MPI_Op op;
    int rank, size;
    struct job_side send, recv;
    MPI_Datatype *types; /* for alltoallw */
    MPI_Datatype datatype;
};

struct job_kit; /* types and operators, made once */
struct job_kit *job_kit_create(void);
void job_kit_free(struct job_kit *kit);

/* bytes: how long a block is about; drawn when negative. which: drawn when JOB_COLLECTIVE_COUNT. */
struct job job_draw(const struct job_kit *kit, MPI_Comm comm, uint64_t seed,
                    enum job_collective which, long bytes);
void job_free(struct job *job);

void job_fill(struct job *job);

/* What MPI returned; a request that is not MPI_REQUEST_NULL is active. */
int job_start(struct job *job, MPI_Comm comm, enum form form, MPI_Request *request);

/* In words, for a message. */
void job_describe(const struct job *job, char *text, size_t size);

uint64_t job_random(uint64_t *state);

#endif
