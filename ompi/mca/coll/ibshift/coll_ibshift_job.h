/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_JOB_H
#define IBSHIFT_COLL_JOB_H

/* What a collective was called with, and what it asks for. */

#include "coll_ibshift.h"
#include "coll_ibshift_buffers.h"

enum ibshift_raw_form {
    IBSHIFT_RAW_IN_PLACE = 1,
    IBSHIFT_RAW_VECTOR = 2, /* allgatherv, not allgather: they have different plans */
    IBSHIFT_RAW_TYPES = 4,  /* alltoallw */
    IBSHIFT_RAW_PADDED =
        8, /* the blocks of one with counts that go padded (coll_ibshift_padded.c), */
    IBSHIFT_RAW_LONG = 16,   /* and those that do not */
    IBSHIFT_RAW_PLACES = 32, /* neighbor_alltoallw: displs are places (compat.h) */
};

/*
 * A call as the program wrote it: what a tape is looked up by before anything is derived.
 * 0 where an argument has no meaning on this rank.
 */
struct ibshift_raw {
    const void *sbuf;
    void *rbuf;
    /* What the call must have in common with an earlier one; of arrays the contents. */
    struct ompi_datatype_t *stype, *rtype;
    struct ompi_op_t *op;
    ibshift_count_t scount, rcount;
    int root;
    int form; /* enum ibshift_raw_form, together */
    ibshift_array_t scounts, sdispls, rcounts, rdispls;
    struct ompi_datatype_t *const *stypes, *const *rtypes;
};

/* Which function of MPI has been called, and how. */
struct ibshift_called {
    const char *name;
    enum ibshift_form form;
    enum ibshift_collective collective;
    struct ibshift_raw raw;
};

/*
 * What an MPI collective asks for, before an algorithm is chosen. The same on all ranks
 * where MPI says so.
 */
struct ibshift_job {
    enum ibshift_collective collective;
    const char *name; /* MPI's */
    uint32_t root;
    uint32_t needs; /* the row must have one of these flags; 0: any row */
    uint64_t bytes; /* what the choice looks at: a block, or the vector; the same on all ranks */
    int raw_form;   /* as called: alike on all ranks, whatever a rank's arrays are */
    bool in_place;  /* send and recv overlap in the way that alg.h says */
    struct ompi_op_t *op; /* of a reduction */
    struct ibshift_side send, recv;
};

/* A v-variant of which no rank knows all sizes, and leaders hear those of their node first, for that row, which carries short blocks (exec/mixed.h). */
static inline bool ibshift_job_tells_counts(const struct ibshift_job *job,
                                            const struct ibshift_alg *alg)
{
    return ibshift_needs_any_size(job->needs) && 0 == (alg->flags & IBSHIFT_ALG_SIZES);
}

/* What a plan is chosen by. */
struct ibshift_wanted ibshift_job_wanted(const struct ibshift_job *job, enum ibshift_form form);

/* How the ranks of a communicator tell each other what is found for all of them. */
struct ibshift_together ibshift_job_together(struct ompi_communicator_t *comm);

/* MPI's of 0 or a status of the library; and back. */
int ibshift_code(int status);
int ibshift_errno(int code);

/* Derives the job from the arguments, of a neighborhood collective once its neighbours are known. OMPI_SUCCESS,
 * OMPI_ERR_NOT_SUPPORTED on all ranks alike, or an error of this rank alone. */
int ibshift_job_describe(const mca_coll_ibshift_module_t *module,
                         const struct ibshift_called *called, struct ibshift_job *job);

/* Elements of the vector; 0: of a call that may end on a rank before it has begun on all. */
uint64_t ibshift_job_elements(const struct ibshift_job *job, uint32_t ranks);

/* The badge, in its place. */
uint32_t ibshift_job_badge(const struct ibshift_job *job, const struct ibshift_alg *alg,
                           const struct ibshift_plan *plan);

/* The operator of a reduction: the context of the functions below. */
struct ibshift_operator {
    struct ompi_op_t *op;
    struct ompi_datatype_t *type;
    int function;     /* of the operator for the type; -1: it is not known ahead */
    bool takes_three; /* there is one of three buffers, too, which want them apart */
    ptrdiff_t lower_bound;
    size_t extent;
};

struct ibshift_operator ibshift_job_operator(const struct ibshift_job *job);
void ibshift_operator_reduce(void *context, const void *left, void *right, void *target,
                             size_t elements);
/* The same for few elements, as a tape has them: at once the operator's function for the type,
 * if it is so simple. */
ibshift_reduce_fn ibshift_operator_short(const struct ibshift_operator *reducer);

#endif
