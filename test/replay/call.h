#ifndef IBSHIFT_REPLAY_CALL_H
#define IBSHIFT_REPLAY_CALL_H

/* One call of an MPI collective on one rank: arguments and data that all ranks draw alike, and what must come out. */

#include "ompi.h"

#include "ompi/op/op.h"

#include "program.h"

enum call_form { CALL_BLOCKING, CALL_NONBLOCKING, CALL_PERSISTENT, CALL_FORMS };

struct side {   /* of the arguments: blocks of this rank or of all */
    int blocks; /* 0: this rank has none */
    int counts[PROGRAM_RANKS], displs[PROGRAM_RANKS];
    uint32_t shape[PROGRAM_RANKS];
    size_t at[PROGRAM_RANKS]; /* bytes */
    struct ompi_datatype_t *types[PROGRAM_RANKS];
    size_t bytes;
    char *user;
};

struct call {
    enum program_collective collective;
    uint64_t seed; /* of all that follows, the same on all ranks */
    struct ompi_communicator_t *comm;
    uint32_t ranks, rank, root, members; /* members: a bit each */
    enum call_form form;
    bool in_place, is_mixed; /* is_mixed: each rank has types of its own for the same integers */
    bool is_taken_back;      /* types, operator and arrays are freed while the call goes on */
    uint32_t shape, reduction;
    size_t most; /* bytes of a block */
    struct side send, recv;
    ompi_op_t *op;
    ompi_request_t *request; /* NULL: it has none, or no more */
    uint64_t run;            /* what its data are, of several times */
};

void call_make(struct call *call, struct ompi_communicator_t *comm,
               enum program_collective collective, enum call_form form, uint64_t seed);
void call_fill(struct call *call, uint64_t run);
int call_begin(struct call *call); /* OMPI code; a persistent one is not started yet */
void call_take_back(struct call *call);
bool call_is_right(struct call *call); /* it has ended without an error */
void call_free(struct call *call);

enum { GUARD = 64, PATTERN = 0xa5 }; /* bytes around, and what they and all between are */
void call_take_memory(struct side *side, uint64_t where);
void call_give_memory(struct side *side);
/* Memory of calls that is unmapped and mapped again, where nobody uses it. */
void call_unmap(void);
void call_end(void);

#endif
