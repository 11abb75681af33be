/* Paces that need no clock: grants, barriers between blocks of stages, slow messages. */
#include "exec/pace/pace_impl.h"

static void begin(struct ibshift_op *op)
{
    (void)op;
}

static enum ibshift_verdict may_send(struct ibshift_op *op, struct ibshift_net *net,
                                     const struct ibshift_step *step)
{
    (void)net;
    (void)step;
    return op->pace.flying[IBSHIFT_CLASS_SEND] < op->params.pace->window ? IBSHIFT_GO
                                                                         : IBSHIFT_WAIT;
}

static enum ibshift_verdict may_recv(struct ibshift_op *op, const struct ibshift_step *step)
{
    (void)step;
    return op->pace.flying[IBSHIFT_CLASS_RECV] < op->params.pace->grants ? IBSHIFT_GO
                                                                         : IBSHIFT_WAIT;
}

const struct ibshift_pace_plug ibshift_pace_plug_grants = {
    .begin = begin,
    .may_send = may_send,
    .may_recv = may_recv,
};

/* At the link's rate a message of so many bytes takes kib ns for each 1024 of them. */
static void dress_rate(const struct ibshift_op *op, const struct ibshift_step *step,
                       struct ibshift_net_message *message)
{
    if (step->kind == IBSHIFT_STEP_SEND) {
        message->spread = message->length * op->params.pace->kib / 1024 * op->params.pace->part;
    }
}

const struct ibshift_pace_plug ibshift_pace_plug_rate = {
    .begin = begin,
    .may_send = may_send,
    .may_recv = may_recv,
    .dress = dress_rate,
};

static void begin_block(struct ibshift_op *op)
{
    op->pace.end = op->params.pace->barrier;
}

static bool is_at_end(const struct ibshift_op *op, enum ibshift_class which)
{
    return op->walk.in_flight[which] == 0 &&
           (!op->walk.cursor[which].loaded ||
            ibshift_walk_at(&op->walk, which)->tag >= op->pace.end);
}

/* Ranks without messages in the last blocks keep the others company: all pass the same gates. */
static bool has_more_blocks(const struct ibshift_op *op)
{
    return op->pace.end < op->walk.rounds;
}

static void turn_block(struct ibshift_op *op)
{
    struct ibshift_pace_state *state = &op->pace;

    if (!state->gate.is_open) {
        return;
    }
    if (state->is_between) {
        state->is_between = false;
        state->end += op->params.pace->barrier;
    }
    if (has_more_blocks(op) && is_at_end(op, IBSHIFT_CLASS_RECV) &&
        is_at_end(op, IBSHIFT_CLASS_SEND)) {
        state->is_between = true;
        ibshift_pace_close_gate(op);
        op->moves++;
    }
}

static enum ibshift_verdict may_send_in_block(struct ibshift_op *op, struct ibshift_net *net,
                                              const struct ibshift_step *step)
{
    return step->tag < op->pace.end ? may_send(op, net, step) : IBSHIFT_WAIT;
}

static enum ibshift_verdict may_recv_in_block(struct ibshift_op *op,
                                              const struct ibshift_step *step)
{
    return step->tag < op->pace.end ? may_recv(op, step) : IBSHIFT_WAIT;
}

const struct ibshift_pace_plug ibshift_pace_plug_barrier = {
    .begin = begin_block,
    .may_send = may_send_in_block,
    .may_recv = may_recv_in_block,
    .turn = turn_block,
    .is_busy = has_more_blocks,
};
