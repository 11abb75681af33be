#ifndef IBSHIFT_GROUP_CHOOSE_H
#define IBSHIFT_GROUP_CHOOSE_H

/*
 * Which algorithm runs: choose/choose.h asked with the parameters, the models
 * and the places of the ranks; and the pace of all-to-alls. What was found is kept by the
 * group, for each collective and class of sizes. It depends on what all ranks know alike, and
 * on the same parameters everywhere.
 */

#include "choose/param.h"
#include "exec/op.h"
#include "group/group.h"

/* Reads the model's parameters and that of the pace. What is wrong is reported; then the typical
 * values stay, of hardware or of devices in software, and the pace that suits. */
void ibshift_choose_open(void);
uint64_t ibshift_choose_digest(void); /* of these models, all of their fields */

/* Looks for costs that `ibshift tune` measured on what this process has, in the user's folder
 * and in the administrator's. Their digest; 0: there are none. They are used where all ranks have
 * the same. */
uint64_t ibshift_choose_tuned(const struct ibshift_made *own);

/* Of ibshift_group_choose(), which brings the order along the fabric. */
int ibshift_choose_call(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                        struct ibshift_op_params *params);

/* What is asked for such a call. -ENOMEM: not even that is known. *lacks_memory: false, until an answer is to the
 * others' question no more. */
int ibshift_choose_question(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                            const struct ibshift_plan *plan, bool *lacks_memory,
                            struct ibshift_question *question);

/* The call runs that plan, and who looks on sees it. */
static inline void ibshift_choose_run(struct ibshift_group *group,
                                      enum ibshift_collective collective,
                                      const struct ibshift_choice *choice,
                                      struct ibshift_op_params *params)
{
    atomic_store_explicit(&group->choices.last[collective], choice, memory_order_relaxed);
    params->plan.nodes = &group->choices.nodes;
    params->alg = choice->alg;
    ibshift_choice_take(choice, &params->plan);
}

#endif
