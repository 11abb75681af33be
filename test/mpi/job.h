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
    bool is_even; /* blocks of vector variants have one size */
    MPI_Op op;
    int rank, size;
    struct job_side send, recv;
    MPI_Datatype *types; /* for alltoallw */
    MPI_Datatype datatype;
};

struct job_kit; /* types and operators, made once */
struct job_kit *job_kit_create(void);
void job_kit_plain(struct job_kit *kit); /* sums of integers, never in place */
void job_kit_free(struct job_kit *kit);

/* bytes: how long a block is about; drawn when negative. which: drawn when JOB_COLLECTIVE_COUNT. */
struct job job_draw(const struct job_kit *kit, MPI_Comm comm, uint64_t seed,
                    enum job_collective which, long bytes);
/* Not drawn: `count` elements of a basic type of four bytes in every block, or with a seed about as many
   in those of vector variants. */
struct job job_of(MPI_Comm comm, enum job_collective which, int count, int root, MPI_Op op,
                  MPI_Datatype type, uint64_t seed);
/* The same as another rank sees it, filled. */
struct job job_as(const struct job *job, int rank);
void job_free(struct job *job);

void job_fill(struct job *job);

/* What MPI returned; a request that is not MPI_REQUEST_NULL is active. */
int job_start(struct job *job, MPI_Comm comm, enum form form, MPI_Request *request);

/* Into a copy of the receive buffer's memory as it was filled: what the result must be, computed here. */
void job_expect(const struct job *job, char *expected);

/* Runs it, a persistent one several times, and compares with what job_expect() says. */
void job_check(struct job *job, MPI_Comm comm, enum form form);

/* All 17 collectives in all forms, `rounds` times, each time with other data of about so many bytes a
   block. */
void check_collectives(MPI_Comm comm, int rounds, long bytes);
/* What a fresh communicator must be able to do: one round, of plain integers, since it may be Open MPI's
   libnbc that serves it. */
void check_communicator(MPI_Comm comm);

/* In words, for a message. */
void job_describe(const struct job *job, char *text, size_t size);

uint64_t job_random(uint64_t *state);

#endif
