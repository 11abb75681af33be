/* What files of the user wish for: rules for algorithms (choose/rules.h), and a plan (msccl/msccl.h). One set a process. */
#ifndef IBSHIFT_GROUP_WISHES_H
#define IBSHIFT_GROUP_WISHES_H

#include "choose/rules.h"
#include "choose/words.h"
#include "group/group.h"
#include "plan/listed.h"

/* What is wrong is reported; then the model chooses. */
void ibshift_wishes_open(void);
uint64_t ibshift_wishes_digest(uint64_t sum);
/* Of all of a plan but where it is in the file. */
uint64_t ibshift_listed_digest(uint64_t sum, const struct ibshift_listed *listed);

const struct ibshift_rules *ibshift_wishes_rules(void);
/* The plan, if such a call takes it; NULL: none. */
const struct ibshift_listed *ibshift_wishes_plan(const struct ibshift_group *group,
                                                 const struct ibshift_wanted *wanted);
/* Why such a call does not take it, if it is of the same collective. */
void ibshift_wishes_explain(const struct ibshift_group *group, const struct ibshift_wanted *wanted,
                            struct ibshift_line *line);

#endif
