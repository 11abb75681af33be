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

/* What is asked for such a call. -ENOMEM: not even that is known. *lacks_memory: false, until an answer is to the
 * others' question no more. */
int ibshift_choose_question(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                            const struct ibshift_plan *plan, bool *lacks_memory,
                            struct ibshift_question *question);

/*
 * Algorithm, plan, window, pieces and pace, by choose/choose.h. 0, -ENOTSUP on all
 * ranks alike, or -ENOMEM. Before it, of a call that has no plan yet: ibshift_group_find().
 */
int ibshift_group_choose(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                         uint32_t root, struct ibshift_op_params *params);

/* What was found is forgotten; the shell's stays. */
void ibshift_group_free(struct ibshift_group *group);

#endif
