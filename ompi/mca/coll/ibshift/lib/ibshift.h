/*
 * libibshift: collectives over InfiniBand, RoCE and shared memory, without MPI. See ibshift(3).
 *
 * A program tells each process its rank, and how all of them exchange a few bytes before they can
 * communicate; then groups of them run collectives. No function of this header waits, except those that
 * say so; all return 0 or a negative errno.
 *
 * Threads: any thread may call; those that use one group do so one after the other.
 */
#ifndef IBSHIFT_PUBLIC_H
#define IBSHIFT_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* what the library exports: no other function of it */

#define IBS_API 1 /* of this header: structs may get more members at their end in a later one */

struct ibs_job;     /* the processes that were started together; a process is in one at a time */
struct ibs_group;   /* some of them, or all */
struct ibs_request; /* a collective under way */

/* Gives everybody what each one has, in the order of ranks: `size` bytes of each. Waits. 0, or whatever
 * ibs_open() is to return. */
typedef int ibs_allgather_fn(void *context, const void *mine, void *all, size_t size);

struct ibs_setup {
    int api; /* IBS_API */
    uint32_t rank, ranks;
    ibs_allgather_fn *allgather; /* called by ibs_open() and ibs_close() */
    void *context;
    const char *options;                          /* "name=value;name=value"; NULL: none */
    void (*say)(void *context, const char *text); /* hears warnings; NULL: standard error */
};

/* All processes together; waits. error: one line that says what is wrong, and where. */
int ibs_open(const struct ibs_setup *setup, struct ibs_job **job, char *error, size_t size);

/* All processes together, when there are no groups; waits. */
int ibs_close(struct ibs_job *job);

/*
 * The processes ranks[0], ranks[1], ... of the job, who become ranks 0, 1, ... of the group; NULL: all of
 * them. Each of them calls it, before or after the others. id: a number below IBS_GROUPS that is the same
 * on all of them, and that no other group has that one of them is in at the time.
 */
enum { IBS_GROUPS = 1 << 18 };
int ibs_group_create(struct ibs_job *job, uint32_t id, const uint32_t *ranks, uint32_t count,
                     struct ibs_group **group);

/* No collective is under way. */
int ibs_group_free(struct ibs_group *group);

enum ibs_collective {
    IBS_BARRIER,
    IBS_BCAST,
    IBS_SCATTER,
    IBS_GATHER,
    IBS_ALLGATHER,
    IBS_ALLTOALL,
    IBS_REDUCE,
    IBS_ALLREDUCE,
    IBS_REDUCE_SCATTER, /* a block for each rank */
    IBS_SCAN,
    IBS_EXSCAN,
};

/* right[i] = left[i] op right[i], of so many elements. Associative. */
typedef void ibs_reduce_fn(void *context, const void *left, void *right, size_t elements);

/*
 * One collective, which all ranks of the group call alike and in the same order. What has no meaning on a
 * rank is 0. The memory belongs to the collective until it has ended; the struct and its arrays do not.
 */
struct ibs_call {
    enum ibs_collective collective;
    uint32_t root; /* of bcast, scatter, gather, reduce */
    const void *
        send; /* NULL: the data are in recv, at their place (not of a scatter); of a bcast always so */
    void *recv;
    size_t count;   /* elements of a block, or of the vector */
    size_t element; /* its bytes; 0: 1 */
    /* alltoall and allgather with a count for each rank, in place of count: elements, and where each
     * block begins, in elements. Of an allgather the blocks lie one behind the other, in rank order. */
    const size_t *send_counts, *recv_counts;
    const ptrdiff_t *send_places, *recv_places;
    ibs_reduce_fn *reduce;
    void *context;       /* of reduce */
    bool is_commutative; /* reduce */
};

/* Begins it. Whoever has a request makes progress for all by asking for it. */
int ibs_start(struct ibs_group *group, const struct ibs_call *call, struct ibs_request **request);

/* IBS_RUNNING, or how it has ended; then there is no request any more. */
enum { IBS_RUNNING = 1 };
int ibs_test(struct ibs_request *request);
int ibs_wait(struct ibs_request *request); /* waits */

/* Both in one; waits. Either all ranks call this one or all call ibs_start(). */
int ibs_run(struct ibs_group *group, const struct ibs_call *call);

/* Why the group has failed: whom with, what happened, what to look at. Empty: it has not. A group that has
 * failed stays so, and so do its other ranks. */
const char *ibs_group_error(const struct ibs_group *group);

/* "1.0.0" */
const char *ibs_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
