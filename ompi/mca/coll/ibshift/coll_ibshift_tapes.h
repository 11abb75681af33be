#ifndef IBSHIFT_COLL_TAPES_H
#define IBSHIFT_COLL_TAPES_H

/*
 * The tapes (exec/tape.h) of a communicator's last blocking calls. What a tape depends on is kept
 * beside it and compared at each call, numbers only: the plan that was chosen now, and how the
 * arguments lie in memory. So types, operators and buffers may be freed and come back as others.
 * Callers serialize the collectives of a communicator, as MPI wants it.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_buffers.h"

#include "exec/tape.h"

struct ibshift_kept_tape;

/* Whether a tape can serve it at all: short, nothing is staged, no order that calls must count. */
bool ibshift_tape_may(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job);

/*
 * The place of this call among the last ones of its collective; the oldest is given up for it.
 * NULL: no memory. alg and plan are those that were chosen for the job.
 */
struct ibshift_kept_tape *ibshift_tape_find(mca_coll_ibshift_module_t *module,
                                            const struct ibshift_job *job,
                                            const struct ibshift_op_params *params);

/* NULL: there is no tape yet, or none is possible. */
const struct ibshift_tape *ibshift_tape_of(const struct ibshift_kept_tape *kept);

/* Where the job's buffers are now. */
void ibshift_tape_aim(const struct ibshift_kept_tape *kept, const struct ibshift_job *job,
                      struct ibshift_tape_run *run);

/* The call has run as an op, with so much scratch: when it was not the first, it gets a tape. */
void ibshift_tape_keep(struct ibshift_kept_tape *kept, const struct ibshift_op_params *params,
                       size_t tmp, bool is_staged);

void ibshift_tapes_free(mca_coll_ibshift_module_t *module);

#endif
