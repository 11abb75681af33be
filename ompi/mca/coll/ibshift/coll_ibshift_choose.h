#ifndef IBSHIFT_COLL_CHOOSE_H
#define IBSHIFT_COLL_CHOOSE_H

/*
 * Which algorithm runs, for the component: choose/choose.h asked with the parameters, the models
 * and the places of the ranks; and the pace of all-to-alls. What was found is kept by the
 * communicator, for each collective and class of sizes. It depends on what all ranks know alike, and
 * on the same parameters everywhere.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_buffers.h"

#include "exec/op.h"

/* Reads the model's parameters and that of the pace. What is wrong is reported; then the typical
 * values stay, of hardware or of devices in software, and the pace that suits. */
void ibshift_choose_open(void);
uint64_t ibshift_choose_digest(void); /* of these models, all of their fields */

/* Looks for costs that `ibshift tune` measured with this device, or "memory", in the user's folder
 * and in the administrator's. Their digest; 0: there are none. They are used where all ranks have
 * the same. */
uint64_t ibshift_choose_tuned(const char *device, uint32_t mbps);

/* Algorithm, plan, window, pieces and pace. OMPI_SUCCESS or OMPI_ERR_NOT_SUPPORTED, the same on all
 * ranks. params->plan has ranks, root and commutative. Blocking: the caller looks at completions
 * until the end. */
int ibshift_choose(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                   const struct ibshift_job *job, bool is_blocking,
                   struct ibshift_op_params *params);

/* After a run: says, once, that this rank's clock had to be given up. */
void ibshift_choose_look(const struct ompi_communicator_t *comm,
                         const struct ibshift_op_params *params);

/* The choices of one collective are made anew. */
void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective);
void ibshift_choices_free(mca_coll_ibshift_module_t *module);

#endif
