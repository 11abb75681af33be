#ifndef IBSHIFT_COLL_CALL_H
#define IBSHIFT_COLL_CALL_H

#include "coll_ibshift.h"
#include "coll_ibshift_buffers.h"

#include "ompi/mca/coll/base/coll_base_util.h"

#include "exec/engine.h"

/*
 * What an MPI collective asks for, before an algorithm is chosen. Written by the entry points
 * (coll_ibshift_entry_move.c, _vector.c, _reduce.c), the same on all ranks where MPI says so.
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

/* OMPI codes. In all forms OMPI_ERR_NOT_SUPPORTED means: nothing happened, take the fallback. */
int ibshift_call_blocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                          const struct ibshift_job *job);
int ibshift_call_nonblocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                             const struct ibshift_job *job, struct ompi_request_t **request);
int ibshift_call_persistent(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                            const struct ibshift_job *job, struct ompi_request_t **request);

enum { IBSHIFT_CALL_KEY = 40, IBSHIFT_CALL_TITLE = 160 };

/* Of an op that belongs to a call. The key is the same on all ranks: communicator.number, or
 * communicator.pID.RUN of a persistent one. The title: "iallgather on MPI_COMM_WORLD". */
void ibshift_call_key(const struct ibshift_op *op, char *key, size_t size);
void ibshift_call_title(const struct ibshift_op *op, char *title, size_t size);

/*
 * A communicator begins. Open MPI makes one with nonblocking collectives on another, whose errors
 * it does not look at (4.1, 5.0): after such an error the new one has failed before it begins.
 */
void ibshift_calls_enter(mca_coll_ibshift_module_t *module);

/* Whatever comes next is no consequence of a request that was freed before. */
void ibshift_calls_look_away(void);

/* Calls are kept for the next one; this frees them. The engine still lives, nothing runs. */
void ibshift_calls_free(void);

#endif
