#ifndef IBSHIFT_EXEC_LOCAL_H
#define IBSHIFT_EXEC_LOCAL_H

#include "exec/op.h"

/* Does a copy or reduction step. 0, or a negative errno when the buffers do not fit together. */
int ibshift_local_run(const struct ibshift_op_params *params, const struct ibshift_step *step);

#endif
