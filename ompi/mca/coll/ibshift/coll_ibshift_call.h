/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_CALL_H
#define IBSHIFT_COLL_CALL_H

/*
 * A call: what an MPI collective asks for, made ready to run. Order, plan, pace, the blocks of the
 * user's memory and all memory that the runs need are found here, once for each call.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_job.h"

#include "ompi/mca/coll/base/coll_base_util.h"

/* Of a call whose short blocks go by node. */
struct ibshift_call_mixed {
    struct ibshift_mixed mixed;
    struct ibshift_memory memory[IBSHIFT_MIXED_MEMORIES], places;
    uint32_t seq;                         /* of the run: the first of its stages' numbers */
    void (*ended)(struct ibshift_op *op); /* the last of them */
    bool is_waited;                       /* by a blocking call, */
    atomic_bool has_ended;                /* for this */
};

/* Of what comes again, a call made ready and idle; whoever takes it has it alone. */
struct ibshift_spare {
    struct ibshift_call_t *_Atomic call;
    uint32_t id; /* what it must have for its home_id: others may come home late */
};

/* One collective under way; as a request it starts with what Open MPI expects. */
struct ibshift_call_t {
    ompi_coll_base_nbc_request_t request;
    struct ibshift_op op;
    struct ibshift_side send, recv;
    mca_coll_ibshift_module_t *module;
    const struct ibshift_rank_map
        *map; /* the plan's ranks are places along it; NULL: they are not */
    const char *name;
    struct ibshift_operator reducer; /* op NULL: it does not reduce */
    struct ibshift_gaps gaps;        /* of send and recv, where they are packed late */
    size_t tmp;                      /* bytes of TMP */
    uint32_t first_seq; /* of a persistent call: its id, where the runs are counted from */
    uint32_t runs;
    struct ibshift_repeat *repeat; /* of a call whose grants stand, or NULL */
    struct ibshift_tape *tape;     /* of a persistent call; NULL: none yet, or none is possible */
    bool has_tried_tape;
    bool keeps; /* has copied the arguments' arrays to kept, holds types and operator */
    enum ibshift_collective collective;
    bool tells_counts;                /* it has several ops, and mixed */
    struct ibshift_call_mixed *mixed; /* NULL: it never had */
    struct ibshift_memory kept, offsets, tmp_offsets, scratch;
    struct ibshift_call_t *next; /* idle */
    struct ibshift_spare *home;  /* where it waits for a call like it; NULL: it is anybody's */
    uint32_t home_id;
};
typedef struct ibshift_call_t ibshift_call_t;

/*
 * Chooses a call's plan, and makes it ready but for its memory. OMPI codes; OMPI_ERR_NOT_SUPPORTED
 * means that nothing happened, the same on all ranks. Not a blocking one: the program may free or
 * change what it called with, so types, operator and arrays are kept until the call is given back.
 */
int ibshift_call_make(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                      const struct ibshift_job *job, enum ibshift_form form, ibshift_call_t **out);

/* coll_ibshift_neighbors.c: the communicator's neighbours, once, if it is a neighborhood collective. OMPI codes:
 * OMPI_ERR_NOT_SUPPORTED, on all ranks, without a topology; others are of this rank alone. */
int ibshift_neighbors_find(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                           const struct ibshift_called *called);

/* coll_ibshift_gaps.c: which side is packed late, and its memory. */
void ibshift_call_find_gaps(ibshift_call_t *call, const struct ibshift_wanted *wanted);
size_t ibshift_call_scratch(ibshift_call_t *call, enum ibshift_buffer buf);
void ibshift_call_set_scratch(ibshift_call_t *call, char *scratch);

/* The memory of its runs, but for that of stages. */
int ibshift_call_lay_out(ibshift_call_t *call);

/* Ready, but for the places of send and recv; NULL: there is none. */
ibshift_call_t *ibshift_call_take_spare(struct ibshift_spare *spare);

/* Idle calls are kept for the next one, with their memory and their place in the engine. */
void ibshift_call_give_back(ibshift_call_t *call);

/* Frees the idle ones. The engine still lives, nothing runs. */
void ibshift_calls_free(void);

struct ibshift_tape_run;

/* coll_ibshift_mixed.c: a run of a call that tells counts; then ended() hears of it, or who waits. */
void ibshift_mixed_start(ibshift_call_t *call, uint32_t seq, void (*ended)(struct ibshift_op *op));
/* Tells people why a call has failed, of one op or of several; returns the OMPI code. */
int ibshift_call_report(const ibshift_call_t *call);

/*
 * coll_ibshift_request.c. Collectives in their three forms: who turns the crank, and when the
 * request ends. What fails here on one rank ends the communicator's collectives on all.
 */

/* The short way of a blocking call: down the tape of an earlier one with the same arguments. False:
 * ibshift_call() does the rest. */
bool ibshift_call_run(mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run);

/* The same of a nonblocking call, which does not wait. */
bool ibshift_call_at_once(mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run,
                          struct ompi_request_t **request);

/* The rest, in all forms. OMPI codes; OMPI_ERR_NOT_SUPPORTED means: nothing happened, take the
 * fallback. run: of this call, that was not done; NULL: it has not begun. request: not of a
 * blocking one. */
int ibshift_call(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                 const struct ibshift_called *called, struct ibshift_tape_run *run,
                 struct ompi_request_t **request);

/* What fails on one rank alone ends the collective on all; the first error's code. OMPI_SUCCESS and
 * OMPI_ERR_NOT_SUPPORTED come back as they are. */
int ibshift_call_fail(mca_coll_ibshift_module_t *module, int rc);

/* A call in which this rank has no part: it has its number. The ledger names no call, for this rank does not know its badge: who
 * asks for it is to hear that it has not begun here, not that another collective has. */
void ibshift_call_skip(mca_coll_ibshift_module_t *module);

/* coll_ibshift_linger.c: who waits for a peer does other things, after so many turns in vain. */
void ibshift_idle(unsigned turn);
/* Of a call that has been started, and that the program may leave alone from now on: a moment, until all of it is posted that can
 * be. */
void ibshift_call_linger(ibshift_call_t *call);

/* coll_ibshift_padded.c: as ibshift_call() of a blocking all-to-all with counts. */
int ibshift_padded_call(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                        const struct ibshift_called *called, struct ibshift_tape_run *run);

/*
 * A communicator begins. Open MPI makes one with nonblocking collectives on another, whose errors
 * it does not look at (4.1, 5.0): after such an error the new one has failed before it begins.
 */
void ibshift_requests_enter(mca_coll_ibshift_module_t *module);

/* Once the endpoint is open: Open MPI's progress turns the engine from now on. close() comes before
 * that of the endpoint, when nothing runs any more. */
void ibshift_requests_open(void);
void ibshift_requests_close(void);

#endif
