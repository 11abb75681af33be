#ifndef IBSHIFT_COLL_REQUEST_H
#define IBSHIFT_COLL_REQUEST_H

/*
 * Collectives in their three forms: who turns the crank, and when the request ends. What fails here
 * on one rank ends the communicator's collectives on all.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_tapes.h"

#include "exec/op.h"

/* The short way of a blocking call: down the tape of an earlier one with the same arguments. False:
 * ibshift_call_blocking() does the rest. */
bool ibshift_call_run(mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run);

/* The same of a nonblocking call, which does not wait. */
bool ibshift_call_at_once(mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run,
                          struct ompi_request_t **request);

/* OMPI codes. name: of the form, for people. In all forms OMPI_ERR_NOT_SUPPORTED means: nothing happened,
 * take the fallback. run: of this call, that was not done; NULL: it has not begun. */
int ibshift_call_blocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                          enum ibshift_collective collective, const char *name,
                          const struct ibshift_raw *raw, struct ibshift_tape_run *run);
int ibshift_call_nonblocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                             enum ibshift_collective collective, const char *name,
                             const struct ibshift_raw *raw, struct ibshift_tape_run *run,
                             struct ompi_request_t **request);
int ibshift_call_persistent(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                            enum ibshift_collective collective, const char *name,
                            const struct ibshift_raw *raw, struct ompi_request_t **request);

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
