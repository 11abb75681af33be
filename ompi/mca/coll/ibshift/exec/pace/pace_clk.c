/*
 * Slots on one clock. Stage s may start at base + s x slot, as soon as no more than the lead of the
 * message before is left, and not later than the limit: then it is left aside. A receiver grants in
 * its own order, one at a time. The receiver's slot travels with the grant: the sender moves its
 * own half way there, so that all keep together where clocks differ and hosts are slow.
 */
#include "exec/pace/pace_impl.h"

enum { JUMP_SLOTS = 64, SLIP = 8 };

static int64_t slot_of(const struct ibshift_op *op, const struct ibshift_step *step)
{
    return op->pace->base +
           (int64_t)op->pace->slot * ((int64_t)step->tag - (int64_t)op->pace->first_stage);
}

static int64_t common_now(const struct ibshift_op *op)
{
    return ibshift_clock_common(op->params.pace->clock, op->pace->now);
}

static void wake_at(struct ibshift_op *op, int64_t common)
{
    ibshift_pace_wake_at(op, ibshift_clock_own(op->params.pace->clock, common));
}

static int64_t limit_of(const struct ibshift_op *op)
{
    return (int64_t)(op->pace->unit * op->params.pace->limit / 100);
}

/* From here on grants alone: the collective ends right, in its own time. */
static void give_clock_up(struct ibshift_op *op)
{
    op->pace->is_plain = true;
    if (op->params.pace->memory != NULL) {
        op->params.pace->memory->jumps++;
    }
}

/* The last rank's entry is known only when the news of it is everywhere. */
static void begin(struct ibshift_op *op)
{
    const struct ibshift_pace *pace = op->params.pace;
    struct ibshift_pace_state *state = op->pace;
    uint32_t rounds = 0;

    while (1u << rounds < op->params.plan.ranks) {
        rounds++;
    }
    state->slot = state->unit * pace->stretch / 100;
    state->base = state->start + (int64_t)(pace->delay * (rounds + 1));
    state->is_plain = state->unit == 0;
    if (!state->is_plain && (common_now(op) > state->base + JUMP_SLOTS * (int64_t)state->slot ||
                             common_now(op) < state->start - (int64_t)state->slot)) {
        give_clock_up(op);
    }
}

static enum ibshift_verdict may_send_plain(struct ibshift_op *op)
{
    return op->pace->flying[IBSHIFT_CLASS_SEND] < op->params.pace->window ? IBSHIFT_GO
                                                                          : IBSHIFT_WAIT;
}

/* What the receiver's grant tells of its clock, and the own delay, move the slots. */
static enum ibshift_verdict adjust(struct ibshift_op *op, int64_t slot, int64_t late, uint64_t note)
{
    int64_t ahead = note != 0 ? (int64_t)note - slot : 0;
    int64_t jump = JUMP_SLOTS * (int64_t)op->pace->slot;

    if (ahead > jump || ahead < -jump) {
        give_clock_up(op);
        return may_send_plain(op);
    }
    op->pace->base += ahead / 2 + late / SLIP;
    return IBSHIFT_GO;
}

static enum ibshift_verdict may_send(struct ibshift_op *op, struct ibshift_net *net,
                                     const struct ibshift_step *step)
{
    int64_t slot = slot_of(op, step), now = common_now(op), late = now - slot;
    uint64_t note;

    if (op->pace->is_plain) {
        return may_send_plain(op);
    }
    if (late < -JUMP_SLOTS * (int64_t)op->pace->slot) {
        give_clock_up(op);
        return may_send_plain(op);
    }
    if (late < 0) {
        wake_at(op, slot);
        return IBSHIFT_WAIT;
    }
    if (late > limit_of(op) && op->pace->aside_count < IBSHIFT_ASIDE_MAX) {
        return IBSHIFT_LEAVE;
    }
    if (op->pace->flying[IBSHIFT_CLASS_SEND] >= op->params.pace->window ||
        !ibshift_pace_is_granted(op, net, step, &note)) {
        wake_at(op, slot + limit_of(op) + 1);
        return IBSHIFT_WAIT;
    }
    return adjust(op, slot, late, note);
}

/* One that should have been here for long does not keep the others away. */
static void give_up_waiting(struct ibshift_op *op)
{
    for (uint32_t i = 0; i < op->walk.flights[IBSHIFT_CLASS_RECV].used; i++) {
        if (ibshift_walk_flight_round(&op->walk, IBSHIFT_CLASS_RECV, i) != IBSHIFT_NOT_IN_FLIGHT) {
            ibshift_pace_loosen(op, IBSHIFT_CLASS_RECV, i);
        }
    }
}

static enum ibshift_verdict may_recv(struct ibshift_op *op, const struct ibshift_step *step)
{
    int64_t last = slot_of(op, step) + limit_of(op);

    if (op->pace->flying[IBSHIFT_CLASS_RECV] < op->params.pace->grants) {
        return IBSHIFT_GO;
    }
    if (op->pace->is_plain) {
        return IBSHIFT_WAIT;
    }
    if (common_now(op) > last) {
        give_up_waiting(op);
        return IBSHIFT_GO;
    }
    wake_at(op, last + 1);
    return IBSHIFT_WAIT;
}

static void dress(const struct ibshift_op *op, const struct ibshift_step *step,
                  struct ibshift_net_message *message)
{
    message->early = message->length * op->params.pace->lead / 100;
    if (step->kind == IBSHIFT_STEP_RECV && !op->pace->is_plain) {
        message->note = (uint64_t)slot_of(op, step);
    }
}

/* Low among the times that are seen: those of messages that had their links to themselves. */
static void sent(struct ibshift_op *op, uint64_t took)
{
    struct ibshift_pace_memory *memory = op->params.pace->memory;

    if (memory == NULL) {
        return;
    }
    memory->messages++;
    if (memory->unit == 0 || took < memory->unit) {
        memory->unit = memory->unit == 0 ? took : memory->unit - (memory->unit - took) / 4;
    } else {
        memory->unit +=
            memory->unit / 64 < took - memory->unit ? memory->unit / 64 : took - memory->unit;
    }
}

const struct ibshift_pace_plug ibshift_pace_plug_clk = {
    .begin = begin,
    .may_send = may_send,
    .may_recv = may_recv,
    .dress = dress,
    .sent = sent,
};
