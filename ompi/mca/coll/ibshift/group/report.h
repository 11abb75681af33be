/* Why a group's collective has failed, in words for people. */
#ifndef IBSHIFT_GROUP_REPORT_H
#define IBSHIFT_GROUP_REPORT_H

#include "exec/mixed.h"
#include "exec/op.h"
#include "group/group.h"

/* Of the op, which has failed, once for each peer and cause. name: of its collective. */
void ibshift_report(struct ibshift_group *group, struct ibshift_net *net,
                    const struct ibshift_op *op, const char *name);

/* Of a block whose size two ranks have told unlike. */
void ibshift_report_counts(const struct ibshift_group *group, uint32_t seq,
                           const struct ibshift_mixed_unlike *unlike, const char *name);

#endif
