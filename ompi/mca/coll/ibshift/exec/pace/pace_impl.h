#ifndef IBSHIFT_EXEC_PACE_PACE_IMPL_H
#define IBSHIFT_EXEC_PACE_PACE_IMPL_H

/* Between the op, which calls all of this when it has a pace, and the plugs. */

#include "exec/engine_private.h"

enum ibshift_verdict {
    IBSHIFT_GO,
    IBSHIFT_WAIT, /* for news, or until state.wake */
    IBSHIFT_LEAVE /* a send: aside with it */
};

struct ibshift_pace_plug {
    /* The first gate has opened. */
    void (*begin)(struct ibshift_op *op);
    enum ibshift_verdict (*may_send)(struct ibshift_op *op, struct ibshift_net *net,
                                     const struct ibshift_step *step);
    enum ibshift_verdict (*may_recv)(struct ibshift_op *op, const struct ibshift_step *step);
    /* Sets what the message carries for the pace; may be NULL. */
    void (*dress)(const struct ibshift_op *op, const struct ibshift_step *step,
                  struct ibshift_net_message *message);
    /* A send that had its slot is over after so many ns; may be NULL. */
    void (*sent)(struct ibshift_op *op, uint64_t took);
};

extern const struct ibshift_pace_plug ibshift_pace_plug_clk;

/* The rest is called by the op. */

void ibshift_pace_begin(struct ibshift_op *op, struct ibshift_engine *engine);

/* News of a message of the gate or of the comparison of clocks. */
void ibshift_pace_event(struct ibshift_op *op, struct ibshift_engine *engine, uint32_t index);
static inline uint32_t ibshift_pace_pending(const struct ibshift_op *op)
{
    return op->pace->gate.pending + op->pace->sync.pending;
}
/* A rank that one of both waits for; the own one: none. */
uint32_t ibshift_pace_awaited(const struct ibshift_op *op);

/* Reads the clock and turns the gate; a failure is the op's. */
void ibshift_pace_enter(struct ibshift_op *op, struct ibshift_engine *engine);

/* The step that the walk would start, or a later one when sends are left aside, or NULL. */
const struct ibshift_step *ibshift_pace_next(struct ibshift_op *op, struct ibshift_engine *engine,
                                             enum ibshift_class which,
                                             const struct ibshift_step *step);

void ibshift_pace_dress(const struct ibshift_op *op, const struct ibshift_step *step,
                        struct ibshift_net_message *message);
void ibshift_pace_started(struct ibshift_op *op, enum ibshift_class which, uint32_t index);
void ibshift_pace_ended(struct ibshift_op *op, struct ibshift_engine *engine,
                        enum ibshift_class which, uint32_t index);

/* EARLY or LEFT. */
void ibshift_pace_news(struct ibshift_op *op, enum ibshift_class which, uint32_t index);

/* The place in op->pace->aside of a send to make up now, or -1. */
int ibshift_pace_made_up(struct ibshift_op *op, struct ibshift_net *net);
/* It has gone to the net, or at once through it: its place is free. */
void ibshift_pace_forget(struct ibshift_op *op, int place, bool is_flying);

bool ibshift_pace_is_over(const struct ibshift_op *op);

/* For the plugs. */

/* Whether the net would send this at once, as far as the receiver goes. note: 0 when it gave none.
 */
bool ibshift_pace_is_granted(const struct ibshift_op *op, struct ibshift_net *net,
                             const struct ibshift_step *step, uint64_t *note);

/* Sleeping until then is all right, as far as own time goes. */
static inline void ibshift_pace_wake_at(struct ibshift_op *op, uint64_t own)
{
    op->pace->wake = own < op->pace->wake ? own : op->pace->wake;
}

static inline void ibshift_pace_loosen(struct ibshift_op *op, enum ibshift_class which,
                                       uint32_t index)
{
    struct ibshift_pace_flight *flight = &op->pace->flight[which][index];

    op->pace->flying[which] -= !flight->is_loose;
    flight->is_loose = true;
}

#endif
