#ifndef IBSHIFT_EXEC_OPENING_H
#define IBSHIFT_EXEC_OPENING_H

/*
 * Grants that stand for the user's memory (net.h), of calls that come again with the same arguments. What
 * is left to tell is that a rank has begun, so that its buffer may be overwritten: not to each of its
 * senders, but by an allgather of one byte, whose log P messages a rank the plan's own data follows as
 * far as it has come. Bruck's goes to the left, so the nearest ranks to the right, whom a shift sends
 * to first, are known first.
 *
 * The byte also says that a rank's memory is not where it was, so that its senders wait for another
 * grant; and that a rank had rather have no opening, which all have heard at the end of a run.
 */

#include "exec/op.h"

enum {
    IBSHIFT_OPENING_ANEW = 1,    /* what this rank granted before does not hold */
    IBSHIFT_OPENING_REFUSED = 2, /* it has fewer grants to save than messages to send for it */
};

struct ibshift_opening {
    struct ibshift_op child;
    uint8_t told;   /* of this rank, before a start */
    uint8_t *heard; /* of the others: by distance to the right, as they come; then by rank */
};

/* NULL: no memory. For free(), when no op has it. */
struct ibshift_opening *ibshift_opening_make(uint32_t ranks);

/* For an op whose params are complete, and that is idle. */
void ibshift_opening_take(struct ibshift_opening *opening, const struct ibshift_op *op);

/* Whether the send may start: its receiver has begun, or it has no standing grant to wait for. */
bool ibshift_opening_admits(const struct ibshift_op *op, struct ibshift_net *net,
                            const struct ibshift_step *step);

/* What the net hears of a long message, in an op that is opened. */
void ibshift_opening_annotate(const struct ibshift_op *op, const struct ibshift_step *step,
                              struct ibshift_net_message *message);

/*
 * Of a run that the opening holds up: one of so many ranks, from this distance to the right on, has not begun, as far as this
 * rank can know; the first is the one that is awaited, and would tell of the others. 0: all that it must know have begun.
 */
uint32_t ibshift_opening_lacks(const struct ibshift_op *op, uint32_t *first);

/* Whether any rank has, in a run that has ended without error: alike on all of them. */
bool ibshift_opening_has_told(const struct ibshift_opening *opening, uint32_t ranks, uint8_t what);

/* Whether so many messages, which one rank would grant, are fewer than those of the opening. */
bool ibshift_opening_refuses(uint32_t ranks, uint32_t grants);

#endif
