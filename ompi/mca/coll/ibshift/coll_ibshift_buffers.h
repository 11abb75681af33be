#ifndef IBSHIFT_COLL_BUFFERS_H
#define IBSHIFT_COLL_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi/datatype/ompi_datatype.h"

#include "exec/blocks.h"
#include "plan/alg.h"
#include "plan/walk.h"

/*
 * One side of a collective: the blocks in the user's memory, described by MPI's arguments, and how
 * the plan sees them. What lies in one piece is used where it is; everything else is staged: packed
 * into scratch before each start, unpacked from there after the end.
 */
enum ibshift_shape {
    IBSHIFT_SIDE_ABSENT, /* this rank has no such side */
    IBSHIFT_SIDE_BLOCKS, /* blocks of count elements, one after the other */
    IBSHIFT_SIDE_VECTOR, /* count elements that the plan cuts as it likes */
    IBSHIFT_SIDE_RUNS,   /* block i: counts[i] elements, one block after the other */
    IBSHIFT_SIDE_COUNTS, /* block i: counts[i] elements at displs[i] */
    IBSHIFT_SIDE_TYPES   /* alltoallw: the same with types[i], displs in bytes */
};

struct ibshift_side {
    enum ibshift_shape shape;
    char *user;
    struct ompi_datatype_t *type;
    size_t count;
    uint32_t blocks; /* not of a vector */
    bool is_operand; /* of a reduction: an element keeps its extent and is never split */
    const int *counts;
    const int *displs;
    struct ompi_datatype_t *const *types;
    bool loads;    /* the user's data goes in before each start */
    bool stores;   /* what is there at the end goes to the user */
    bool is_apart; /* staged in any case */

    bool is_staged;
    bool is_device;  /* the user's memory is a device's */
    char *scratch;   /* set by the owner before load() */
    size_t bytes;    /* of the blocks without gaps */
    size_t *offsets; /* set by the owner as well; of the blocks, in units or in scratch */
};

/* Blocks with sizes lie one behind the other, so that several can go in one message. */
bool ibshift_side_is_dense(const struct ibshift_side *side);

/* It would not be staged, as far as the arguments alone say; and of types for each block, none is the
 * program's. */
bool ibshift_side_is_whole(const struct ibshift_side *side);

/* Decides whether to stage. Sets bytes. */
void ibshift_side_prepare(struct ibshift_side *side);

/*
 * For a collective that goes on when its call has returned: the caller may free types then, and
 * programs free or change the arrays too. keep() copies the arrays to memory of keep_bytes(), a
 * multiple of 8, retains the types, and returns the memory behind; let_go() releases the types.
 */
size_t ibshift_side_keep_bytes(const struct ibshift_side *side);
char *ibshift_side_keep(struct ibshift_side *side, char *memory);
void ibshift_side_let_go(struct ibshift_side *side);

/* Of a side with counts. */
size_t ibshift_side_block_bytes(const struct ibshift_side *side, uint32_t block);

/* How many offsets the owner must bring; 0 for most. */
size_t ibshift_side_offsets(const struct ibshift_side *side);

/* The side as the plan sees it. pieces: of a vector. */
void ibshift_side_blocks(const struct ibshift_side *side, uint32_t pieces,
                         struct ibshift_blocks *blocks);

/* The user's data to scratch and back, for a side that is staged. */
void ibshift_side_load(const struct ibshift_side *side);
void ibshift_side_store(const struct ibshift_side *side);

/* Bytes from the user's pointer to the first byte that the type touches. */
ptrdiff_t ibshift_type_lower_bound(const struct ompi_datatype_t *type);
ptrdiff_t ibshift_type_extent(const struct ompi_datatype_t *type);
size_t ibshift_type_size(const struct ompi_datatype_t *type);
/*
 * What an MPI collective asks for, before an algorithm is chosen. Written by the entry points
 * (coll_ibshift_entry.c), the same on all ranks where MPI says so.
 */
struct ibshift_job {
    enum ibshift_collective collective;
    const char *name; /* MPI's */
    uint32_t root;
    uint32_t needs; /* the row must have one of these flags; 0: any row */
    uint64_t bytes; /* what the choice looks at: a block, or the vector; the same on all ranks */
    bool in_place;  /* send and recv overlap in the way that alg.h says */
    struct ompi_op_t *op; /* of a reduction */
    struct ibshift_side send, recv;
};

/* A v-variant of which no rank knows all sizes. */
static inline bool ibshift_job_is_any_size(const struct ibshift_job *job)
{
    return 0 != job->needs && 0 == (job->needs & IBSHIFT_ALG_SIZES_ALL);
}

/* ... and leaders have to hear those of their node first, for that row. */
static inline bool ibshift_job_tells_counts(const struct ibshift_job *job,
                                            const struct ibshift_alg *alg)
{
    return ibshift_job_is_any_size(job) && 0 == (alg->flags & IBSHIFT_ALG_SIZES);
}

/* Where grants stand in blocking calls, but not in this one (number_standing() in coll_ibshift_call.c). */
static inline bool ibshift_job_grants_anew(const struct ibshift_job *job, bool is_blocking)
{
    return job->bytes <= IBSHIFT_STANDING_MOST &&
           ((IBSHIFT_ALLREDUCE == job->collective && !is_blocking) ||
            (IBSHIFT_REDUCE_SCATTER == job->collective &&
             (!is_blocking || NULL != job->recv.counts || NULL != job->send.counts)));
}

/* Jobs of one kind and size have one plan. */
static inline int ibshift_job_kind(const struct ibshift_job *job, bool is_commutative,
                                   bool is_blocking)
{
    int sizes = 0 == job->needs                              ? 0
                : !ibshift_job_is_any_size(job)              ? 2
                : 0 == (job->needs & IBSHIFT_ALG_SIZES_NODE) ? 1
                                                             : 3;

    return sizes * 4 + 2 * ibshift_job_grants_anew(job, is_blocking) + is_commutative;
}

#endif
