/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_CHOOSE_H
#define IBSHIFT_COLL_CHOOSE_H

/*
 * Which algorithm runs, for the component: choose/choose.h asked with the parameters, the models
 * and the places of the ranks; and the pace of all-to-alls. What was found is kept by the
 * communicator, for each collective and class of sizes. It depends on what all ranks know alike, and
 * on the same parameters everywhere.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_job.h"

/* Reads the model's parameters and that of the pace. What is wrong is reported; then the typical
 * values stay, of hardware or of devices in software, and the pace that suits. */
void ibshift_choose_open(void);
uint64_t ibshift_choose_digest(void); /* of these models, all of their fields */

/* Looks for costs that `ibshift tune` measured with this device, or "memory", in the user's folder
 * and in the administrator's. Their digest; 0: there are none. They are used where all ranks have
 * the same. */
uint64_t ibshift_choose_tuned(const char *device, uint32_t mbps, const char *firmware);

/* Algorithm, plan, window, pieces and pace, by choose/choose.h. OMPI_SUCCESS or OMPI_ERR_NOT_SUPPORTED, the same on all
 * ranks. params->plan has ranks, root and commutative. Blocking: the caller looks at completions
 * until the end. */
int ibshift_choose_call(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                        const struct ibshift_job *job, bool is_blocking,
                        struct ibshift_op_params *params);

/* What is asked for such a job. OMPI_ERR_OUT_OF_RESOURCE: not even that is known. *lacks_memory: false, until an answer is to
 * the others' question no more. */
int ibshift_choose_question(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                            const struct ibshift_plan *plan, bool is_blocking, bool *lacks_memory,
                            struct ibshift_question *question);

/* The call runs that plan, and who looks on sees it. */
static inline void ibshift_choose_run(mca_coll_ibshift_module_t *module,
                                      enum ibshift_collective collective,
                                      const struct ibshift_choice *choice,
                                      struct ibshift_op_params *params)
{
    atomic_store_explicit(&module->choices.last[collective], choice, memory_order_relaxed);
    params->plan.nodes = &module->choices.nodes;
    params->alg = choice->alg;
    ibshift_choice_take(choice, &params->plan);
}

void ibshift_choices_free(mca_coll_ibshift_module_t *module);

#endif
