#ifndef IBSHIFT_COLL_CHOOSE_H
#define IBSHIFT_COLL_CHOOSE_H

/*
 * Which algorithm runs, for the component: choose/choose.h asked with the parameters, the models
 * and the places of the ranks. What was found is kept by the communicator, for each collective and
 * class of sizes. It depends on what all ranks know alike, and on the same parameters everywhere.
 */

#include "coll_ibshift_call.h"

void ibshift_choices_free(struct ibshift_choices *choices);
/* The one that ran last; NULL: none has. */
const struct ibshift_choice *ibshift_choices_last(const struct ibshift_choices *choices,
                                                  enum ibshift_collective collective);
/* Those of one collective: they are made anew. */
void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective);

/* Reads the model's parameters; a file that is wrong is reported, and the typical values stay: of
 * hardware, or of devices in software. */
void ibshift_choose_open(void);
uint64_t ibshift_choose_digest(void); /* of the models in use, all of their fields */
const struct ibshift_model *ibshift_choose_model(void);

/* Algorithm, plan and window. OMPI_SUCCESS or OMPI_ERR_NOT_SUPPORTED, the same on all ranks.
 * params->plan has ranks, root and commutative. */
int ibshift_choose(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                   const struct ibshift_job *job, struct ibshift_op_params *params);

#endif
