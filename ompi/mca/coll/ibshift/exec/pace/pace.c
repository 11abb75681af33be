/* What is common to all paces: who flies, what is left aside, the gate; and the paces that need no
 * clock. */
#include "exec/pace/pace_impl.h"

static void begin_at_once(struct ibshift_op *op)
{
    (void)op;
}

static enum ibshift_verdict may_send(struct ibshift_op *op, struct ibshift_net *net,
                                     const struct ibshift_step *step)
{
    (void)net;
    (void)step;
    return op->pace->flying[IBSHIFT_CLASS_SEND] < op->params.pace->window ? IBSHIFT_GO
                                                                          : IBSHIFT_WAIT;
}

static enum ibshift_verdict may_recv(struct ibshift_op *op, const struct ibshift_step *step)
{
    (void)step;
    return op->pace->flying[IBSHIFT_CLASS_RECV] < op->params.pace->grants ? IBSHIFT_GO
                                                                          : IBSHIFT_WAIT;
}

static const struct ibshift_pace_plug plug_grants = {
    .begin = begin_at_once,
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

static const struct ibshift_pace_plug plug_rate = {
    .begin = begin_at_once,
    .may_send = may_send,
    .may_recv = may_recv,
    .dress = dress_rate,
};

static const struct ibshift_pace_plug *const plugs[IBSHIFT_PACES] = {
    [IBSHIFT_PACE_GRANTS] = &plug_grants,
    [IBSHIFT_PACE_CLK] = &ibshift_pace_plug_clk,
    [IBSHIFT_PACE_RATE] = &plug_rate,
};

enum { TIME, UNIT, NOT_FIRST_STAGE, WANTS_SYNC }; /* what a gate tells */

static const uint64_t no_sign = 1ull << 63; /* so that signed times compare as unsigned ones */

/* The stage of the first message; UINT32_MAX: there is none. */
static uint32_t first_stage(const struct ibshift_walk *walk)
{
    uint32_t first = UINT32_MAX;

    for (int which = 0; which < IBSHIFT_CLASS_LOCAL; which++) {
        if (walk->cursor[which].has_step && walk->cursor[which].step.tag < first) {
            first = walk->cursor[which].step.tag;
        }
    }
    return first;
}

/* Once an op at most. */
static bool wants_sync(const struct ibshift_op *op)
{
    const struct ibshift_pace *pace = op->params.pace;
    const struct ibshift_clock *clock = pace->clock;

    return pace->kind == IBSHIFT_PACE_CLK && clock != NULL && pace->sync != 0 &&
           !op->pace->sync.is_done &&
           (!clock->is_known || op->pace->now - clock->since > pace->sync);
}

static void close_gate(struct ibshift_op *op)
{
    struct ibshift_pace_state *state = op->pace;
    const struct ibshift_pace_memory *memory = op->params.pace->memory;

    state->gate.most[TIME] =
        (uint64_t)ibshift_clock_common(op->params.pace->clock, state->now) ^ no_sign;
    state->gate.most[UNIT] = memory != NULL ? memory->unit : 0;
    state->gate.most[NOT_FIRST_STAGE] = UINT32_MAX - first_stage(&op->walk);
    state->gate.most[WANTS_SYNC] = wants_sync(op);
    ibshift_gate_close(&state->gate);
}

void ibshift_pace_begin(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_pace_state *state = op->pace;

    state->plug = plugs[op->params.pace->kind];
    state->now = ibshift_net_now(engine->net);
    state->wake = UINT64_MAX;
    state->flying[IBSHIFT_CLASS_RECV] = state->flying[IBSHIFT_CLASS_SEND] = 0;
    state->aside_count = state->made_up = 0;
    state->has_begun = false;
    ibshift_gate_reset(&state->gate);
    ibshift_sync_reset(&state->sync);
    close_gate(op);
    if (!op->params.pace->is_gated) {
        state->gate.is_open = true;
        state->gate.most[WANTS_SYNC] = 0;
    }
}

static void begin_plug(struct ibshift_op *op)
{
    struct ibshift_pace_state *state = op->pace;

    state->has_begun = true;
    state->start = (int64_t)(state->gate.most[TIME] ^ no_sign);
    state->unit = op->params.pace->unit != 0 ? op->params.pace->unit : state->gate.most[UNIT];
    state->first_stage = UINT32_MAX - (uint32_t)state->gate.most[NOT_FIRST_STAGE];
    state->plug->begin(op);
}

/* Behind the first gate, the clocks are compared when anyone wants it; then there is another. */
static int begin(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_pace_state *state = op->pace;
    int rc = 0;

    if (state->gate.most[WANTS_SYNC] != 0 && !state->sync.is_done) {
        rc = ibshift_sync_turn(op, engine);
        if (rc == 0 && state->sync.is_done) {
            close_gate(op);
            op->moves++;
        }
    } else {
        begin_plug(op);
    }
    return rc;
}

void ibshift_pace_enter(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_pace_state *state = op->pace;
    int rc = 0;

    state->now = ibshift_net_now(engine->net);
    state->wake = UINT64_MAX;
    if (!state->gate.is_open) {
        rc = ibshift_gate_turn(op, engine);
    }
    if (rc == 0 && state->gate.is_open && !state->has_begun) {
        rc = begin(op, engine);
    }
    if (rc != 0) {
        ibshift_op_fail(op, engine, ibshift_pace_awaited(op), rc);
    }
}

void ibshift_pace_event(struct ibshift_op *op, struct ibshift_engine *engine, uint32_t index)
{
    op->moves++;
    if (index < IBSHIFT_GATE_INDICES) {
        ibshift_gate_event(op);
    } else {
        ibshift_sync_event(op, engine, index);
    }
}

uint32_t ibshift_pace_awaited(const struct ibshift_op *op)
{
    return op->pace->gate.is_open ? ibshift_sync_awaited(op) : ibshift_gate_awaited(op);
}

bool ibshift_pace_is_over(const struct ibshift_op *op)
{
    const struct ibshift_pace_state *state = op->pace;

    return state->has_begun && state->gate.is_open;
}

bool ibshift_pace_is_granted(const struct ibshift_op *op, struct ibshift_net *net,
                             const struct ibshift_step *step, uint64_t *note)
{
    struct ibshift_net_key key = {op->params.comm, op->seq, ibshift_step_key(step)};
    char *address;
    size_t length = 0;

    *note = 0;
    (void)ibshift_blocks_range(&op->params.blocks[step->buf], step->first, step->count, &address,
                               &length);
    return length <= net->max_eager ||
           ibshift_net_granted(net, ibshift_op_peer(op, step->peer), &key, note);
}

static void leave(struct ibshift_op *op, struct ibshift_net *net, const struct ibshift_step *step)
{
    struct ibshift_pace_state *state = op->pace;
    struct ibshift_pace_memory *memory = op->params.pace->memory;
    struct ibshift_aside *aside = &state->aside[state->aside_count++];
    struct ibshift_net_key key = {op->params.comm, op->seq, ibshift_step_key(step)};

    aside->step = *step;
    aside->index = ibshift_walk_start(&op->walk, IBSHIFT_CLASS_SEND);
    if (memory != NULL) {
        memory->left++;
        if (memory->left_to != NULL) {
            memory->left_to[aside->step.peer]++;
        }
    }
    state->flight[IBSHIFT_CLASS_SEND][aside->index] =
        (struct ibshift_pace_flight){.is_loose = true};
    op->moves++;
    ibshift_net_leave(net, ibshift_op_peer(op, aside->step.peer), &key);
}

static bool may_leave(const struct ibshift_op *op, const struct ibshift_step *step)
{
    return op->pace->aside_count < IBSHIFT_ASIDE_MAX && step->need == 0 && step->drain == 0;
}

const struct ibshift_step *ibshift_pace_next(struct ibshift_op *op, struct ibshift_engine *engine,
                                             enum ibshift_class which,
                                             const struct ibshift_step *step)
{
    const struct ibshift_pace_plug *plug = op->pace->plug;
    enum ibshift_verdict verdict = IBSHIFT_LEAVE;

    if (which == IBSHIFT_CLASS_LOCAL) {
        return step;
    }
    if (!op->pace->has_begun ||
        !op->pace->gate.is_open) { /* clocks are compared between two gates */
        return NULL;
    }
    while (step != NULL && verdict == IBSHIFT_LEAVE) {
        verdict = which == IBSHIFT_CLASS_RECV ? plug->may_recv(op, step)
                                              : plug->may_send(op, engine->net, step);
        if (verdict == IBSHIFT_LEAVE && !may_leave(op, step)) {
            verdict = IBSHIFT_GO;
        } else if (verdict == IBSHIFT_LEAVE) {
            leave(op, engine->net, step);
            step = ibshift_walk_next(&op->walk, which);
        }
    }
    return verdict == IBSHIFT_GO ? step : NULL;
}

void ibshift_pace_dress(const struct ibshift_op *op, const struct ibshift_step *step,
                        struct ibshift_net_message *message)
{
    if (op->pace->plug->dress != NULL) {
        op->pace->plug->dress(op, step, message);
    }
}

void ibshift_pace_started(struct ibshift_op *op, enum ibshift_class which, uint32_t index)
{
    op->pace->flight[which][index] = (struct ibshift_pace_flight){.since = op->pace->now};
    op->pace->flying[which]++;
}

void ibshift_pace_ended(struct ibshift_op *op, struct ibshift_engine *engine,
                        enum ibshift_class which, uint32_t index)
{
    const struct ibshift_pace_flight *flight = &op->pace->flight[which][index];

    if (which == IBSHIFT_CLASS_SEND && flight->is_made_up) {
        op->pace->made_up--;
    } else if (which == IBSHIFT_CLASS_SEND && op->pace->plug->sent != NULL) {
        op->pace->plug->sent(op, ibshift_net_now(engine->net) - flight->since);
    }
    ibshift_pace_loosen(op, which, index);
}

/* The oldest whose grant is here; when there is none, the oldest of all waits for it in the net,
 * which looks after its receiver. */
int ibshift_pace_made_up(struct ibshift_op *op, struct ibshift_net *net)
{
    struct ibshift_pace_state *state = op->pace;

    if (op->walk.cursor[IBSHIFT_CLASS_SEND].has_step ||
        state->made_up >= op->params.pace->make_up) {
        return -1;
    }
    for (uint32_t i = 0; i < state->aside_count; i++) {
        uint64_t note;

        if (ibshift_pace_is_granted(op, net, &state->aside[i].step, &note)) {
            return (int)i;
        }
    }
    return state->aside_count > 0 && state->made_up == 0 ? 0 : -1;
}

void ibshift_pace_forget(struct ibshift_op *op, int place, bool is_flying)
{
    struct ibshift_pace_state *state = op->pace;

    state->flight[IBSHIFT_CLASS_SEND][state->aside[place].index].is_made_up = is_flying;
    state->made_up += is_flying;
    state->aside_count--;
    for (uint32_t i = (uint32_t)place; i < state->aside_count; i++) {
        state->aside[i] = state->aside[i + 1];
    }
}

void ibshift_pace_news(struct ibshift_op *op, enum ibshift_class which, uint32_t index)
{
    ibshift_pace_loosen(op, which, index);
    op->moves++;
}
