#ifndef IBSHIFT_GROUP_REPEAT_H
#define IBSHIFT_GROUP_REPEAT_H

/* Persistent calls, whose grants may stand for the user's memory. Under the group's owner, as its calls are. */

#include "exec/op.h"
#include "group/group.h"

struct ibshift_repeat; /* of one call */

struct ibshift_repeated {
    struct ibshift_op *op; /* its memory is laid out */
    const struct ibshift_wanted *wanted;
    uint32_t number;    /* among the group's */
    uint32_t blocks[2]; /* of SEND and RECV */
};

/* Whether grants of such a call are to stand, if they can: the same on all ranks. */
bool ibshift_repeat_is_wanted(const struct ibshift_group *group,
                              const struct ibshift_wanted *wanted,
                              const struct ibshift_op_params *params);

/* 0, and NULL where each run sends grants, or -ENOMEM. */
int ibshift_repeat_make(struct ibshift_group *group, const struct ibshift_repeated *call,
                        struct ibshift_repeat **out);

/* Before each run, after each, and when the call is given back. Of those that are NULL nothing. */
void ibshift_repeat_begin(struct ibshift_repeat *repeat, struct ibshift_op *op);
void ibshift_repeat_end(struct ibshift_repeat **repeated, struct ibshift_op *op);
void ibshift_repeat_leave(struct ibshift_repeat **repeated, struct ibshift_op *op);

#endif
