#ifndef IBSHIFT_EXEC_STANDING_H
#define IBSHIFT_EXEC_STANDING_H

/* Scratch at the same place each time, so that grants for it may stand: of one communicator. */

#include "exec/op.h"

struct ibshift_standing; /* NULL: no call has needed it yet */

/*
 * The number of a call's messages, or 0: the same on all ranks. The plan is chosen; elements: of the
 * whole vector, of params->element bytes each, IBSHIFT_STANDING_MOST bytes at most; renames: the
 * plan's ranks are places of an order.
 */
uint32_t ibshift_standing_number(struct ibshift_standing **standing,
                                 const struct ibshift_op_params *params, uint64_t elements,
                                 bool renames);

/* The place of so many bytes of TMP; NULL: anywhere. */
char *ibshift_standing_tmp(struct ibshift_standing *standing,
                           const struct ibshift_op_params *params, size_t bytes);

/* The communicator's grants are forgotten; or peers may still write by them until the end. */
void ibshift_standing_free(struct ibshift_standing *standing, bool may_be_written);

/* The net is gone. */
void ibshift_standing_end(void);

#endif
