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

/* Of a receive: no step of the same run needs the place before. */
static inline bool ibshift_step_can_stand(const struct ibshift_step *step, enum ibshift_buffer buf)
{
    return step->buf == buf && step->need == 0 && step->drain == 0;
}

/* Grants stand where longer messages than max_eager come from peers that are not near. */
struct ibshift_channels {
    size_t max_eager;
    bool (*is_near)(void *context, uint32_t peer);
    void *context;
};

/* How many of a rank's receives to the buffer can stand so, of which all but the place may be known. */
uint32_t ibshift_standing_count(const struct ibshift_op_params *params, enum ibshift_buffer buf,
                                const struct ibshift_channels *over);

/* The place of so many bytes of TMP, all of whose blocks but the place are known; NULL: anywhere. Memory
   is taken when a call first has a receive for which a grant can stand. */
char *ibshift_standing_tmp(struct ibshift_standing *standing,
                           const struct ibshift_op_params *params, size_t bytes,
                           const struct ibshift_channels *over);

/* The communicator's grants are forgotten; or peers may still write by them until the end. */
void ibshift_standing_free(struct ibshift_standing *standing, bool may_be_written);

/* The net is gone. */
void ibshift_standing_end(void);

#endif
