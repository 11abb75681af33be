/* The pace that holds steps back, slots on one clock: what is in flight, what is deferred, the gate. */
#include "exec/pace/pace.h"

#include "exec/op.h"

enum ibshift_verdict {
    IBSHIFT_GO,
    IBSHIFT_WAIT, /* for news, or until state.wake */
    IBSHIFT_DEFER /* a send: to the end of the collective */
};

/* Whether the net would send this at once, as far as the receiver goes. hint: 0 when it gave none. */
static bool is_granted(const struct ibshift_op *op, struct ibshift_net *net,
                       const struct ibshift_step *step, uint64_t *hint)
{
    struct ibshift_net_key key = {ibshift_op_word(op), op->seq, ibshift_step_key(step)};
    char *address;
    size_t length = 0;

    *hint = 0;
    (void)ibshift_blocks_range(&op->params.blocks[step->buf], step->first, step->count, &address,
                               &length);
    return length <= net->max_eager ||
           ibshift_net_granted(net, ibshift_op_peer(op, step->peer), &key, hint);
}

/* Sleeping until then is all right, as far as own time goes. */
static void wake_at_own(struct ibshift_op *op, uint64_t own)
{
    op->pace->wake = own < op->pace->wake ? own : op->pace->wake;
}

static void stop_counting(struct ibshift_op *op, enum ibshift_class which, uint32_t index)
{
    struct ibshift_pace_flight *flight = &op->pace->flight[which][index];

    op->pace->flying[which] -= !flight->is_uncounted;
    flight->is_uncounted = true;
}

/*
 * Slots on one clock. Stage s may start at base + s x slot, as soon as no more than the lead of the
 * message before is left, and not later than the limit: then it is deferred. A receiver grants in
 * its own order, one at a time. The receiver's slot travels with the grant: the sender moves its
 * own half way there, so that all keep together where clocks differ and hosts are slow. A rank that
 * is further off than it can defer sends is not late: its clock is wrong, and it gives it up.
 */
enum {
    JUMP_SLOTS = IBSHIFT_DEFERRED_MAX,
    SLIP = 8 /* a rank moves its slots by this part of its own delay, so that it catches up */
};

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
    wake_at_own(op, ibshift_clock_own(op->params.pace->clock, common));
}

static int64_t limit_of(const struct ibshift_op *op)
{
    return (int64_t)(op->pace->unit * op->params.pace->limit / 100);
}

/* From here on grants alone: the collective ends right, in its own time. */
static void give_clock_up(struct ibshift_op *op)
{
    op->pace->is_clockless = true;
    if (op->params.pace->memory != NULL) {
        op->params.pace->memory->jumps++;
    }
}

/* The last rank's entry is known only when the news of it is everywhere. */
static void begin_slots(struct ibshift_op *op)
{
    const struct ibshift_pace *pace = op->params.pace;
    struct ibshift_pace_state *state = op->pace;
    uint32_t rounds = 0;

    while (1u << rounds < op->params.plan.ranks) {
        rounds++;
    }
    state->slot = state->unit * pace->stretch / 100;
    state->base = state->start + (int64_t)(pace->delay * (rounds + 1));
    state->is_clockless = state->unit == 0;
    if (!state->is_clockless && (common_now(op) > state->base + JUMP_SLOTS * (int64_t)state->slot ||
                                 common_now(op) < state->start - (int64_t)state->slot)) {
        give_clock_up(op);
    }
}

static enum ibshift_verdict may_send_clockless(struct ibshift_op *op)
{
    return op->pace->flying[IBSHIFT_CLASS_SEND] < op->params.pace->window ? IBSHIFT_GO
                                                                          : IBSHIFT_WAIT;
}

/* What the receiver's grant tells of its clock, and the own delay, move the slots. */
static enum ibshift_verdict adjust(struct ibshift_op *op, int64_t slot, int64_t late, uint64_t hint)
{
    int64_t ahead = hint != 0 ? (int64_t)hint - slot : 0;
    int64_t jump = JUMP_SLOTS * (int64_t)op->pace->slot;

    if (ahead > jump || ahead < -jump) {
        give_clock_up(op);
        return may_send_clockless(op);
    }
    op->pace->base += ahead / 2 + late / SLIP;
    return IBSHIFT_GO;
}

static enum ibshift_verdict may_send(struct ibshift_op *op, struct ibshift_net *net,
                                     const struct ibshift_step *step)
{
    int64_t slot = slot_of(op, step), now = common_now(op), late = now - slot;
    uint64_t hint;

    if (op->pace->is_clockless) {
        return may_send_clockless(op);
    }
    if (late < -JUMP_SLOTS * (int64_t)op->pace->slot) {
        give_clock_up(op);
        return may_send_clockless(op);
    }
    if (late < 0) {
        wake_at(op, slot);
        return IBSHIFT_WAIT;
    }
    if (late > limit_of(op) && op->pace->deferred_count < IBSHIFT_DEFERRED_MAX) {
        return IBSHIFT_DEFER;
    }
    if (op->pace->flying[IBSHIFT_CLASS_SEND] >= op->params.pace->window ||
        !is_granted(op, net, step, &hint)) {
        wake_at(op, slot + limit_of(op) + 1);
        return IBSHIFT_WAIT;
    }
    return adjust(op, slot, late, hint);
}

/* One that should have been here for long does not keep the others away. */
static void give_up_waiting(struct ibshift_op *op)
{
    for (uint32_t i = 0; i < op->walk.flights[IBSHIFT_CLASS_RECV].used; i++) {
        if (ibshift_walk_flight_round(&op->walk, IBSHIFT_CLASS_RECV, i) != IBSHIFT_NOT_IN_FLIGHT) {
            stop_counting(op, IBSHIFT_CLASS_RECV, i);
        }
    }
}

/*
 * Without a clock too: a send that was deferred before its receive was posted tells this rank
 * nothing, and comes only when its rank has no other send to start, which may be waiting for this
 * one. Much longer than a message takes, so that the receives that do come stay few at a time.
 */
static uint64_t clockless_patience(const struct ibshift_op *op)
{
    return JUMP_SLOTS * (op->pace->slot + JUMP_SLOTS * op->params.pace->delay);
}

static uint64_t oldest_counted(const struct ibshift_op *op)
{
    uint64_t oldest = UINT64_MAX;

    for (uint32_t i = 0; i < op->walk.flights[IBSHIFT_CLASS_RECV].used; i++) {
        const struct ibshift_pace_flight *flight = &op->pace->flight[IBSHIFT_CLASS_RECV][i];

        if (ibshift_walk_flight_round(&op->walk, IBSHIFT_CLASS_RECV, i) != IBSHIFT_NOT_IN_FLIGHT &&
            !flight->is_uncounted && flight->since < oldest) {
            oldest = flight->since;
        }
    }
    return oldest;
}

static enum ibshift_verdict may_recv(struct ibshift_op *op, const struct ibshift_step *step)
{
    struct ibshift_pace_state *state = op->pace;
    int64_t last = slot_of(op, step) + limit_of(op);
    uint64_t waited;

    if (state->flying[IBSHIFT_CLASS_RECV] < op->params.pace->window) {
        return IBSHIFT_GO;
    }
    waited = state->is_clockless ? state->now - oldest_counted(op) : 0;
    if (state->is_clockless ? waited > clockless_patience(op) : common_now(op) > last) {
        give_up_waiting(op);
        return IBSHIFT_GO;
    }
    if (state->is_clockless) {
        wake_at_own(op, state->now - waited + clockless_patience(op) + 1);
    } else {
        wake_at(op, last + 1);
    }
    return IBSHIFT_WAIT;
}

void ibshift_pace_annotate(const struct ibshift_op *op, const struct ibshift_step *step,
                           struct ibshift_net_message *message)
{
    message->early = message->length * op->params.pace->lead / 100;
    if (step->kind == IBSHIFT_STEP_RECV && !op->pace->is_clockless) {
        message->hint = (uint64_t)slot_of(op, step);
    }
}

/* Low among the times that are seen: those of messages that had their links to themselves. */
static void learn(struct ibshift_op *op, uint64_t took)
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

enum { TIME, UNIT, NOT_FIRST_STAGE, WANTS_COMPARISON }; /* what ranks tell each other at a gate */

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

/* Once in a run at most. */
static bool wants_comparison(const struct ibshift_op *op)
{
    const struct ibshift_pace *pace = op->params.pace;
    const struct ibshift_clock *clock = pace->clock;

    return clock != NULL && pace->sync != 0 && !op->pace->has_compared &&
           (!clock->is_known || op->pace->now - clock->since > pace->sync);
}

static void tell(struct ibshift_op *op)
{
    struct ibshift_pace_state *state = op->pace;
    const struct ibshift_pace_memory *memory = op->params.pace->memory;

    state->told[TIME] =
        (uint64_t)ibshift_clock_common(op->params.pace->clock, state->now) ^ no_sign;
    state->told[UNIT] = memory != NULL ? memory->unit : 0;
    state->told[NOT_FIRST_STAGE] = UINT32_MAX - first_stage(&op->walk);
    state->told[WANTS_COMPARISON] = wants_comparison(op);
}

static void begin(struct ibshift_op *op, const uint64_t *agreed)
{
    struct ibshift_pace_state *state = op->pace;

    state->has_begun = true;
    state->start = (int64_t)(agreed[TIME] ^ no_sign);
    state->unit = op->params.pace->unit != 0 ? op->params.pace->unit : agreed[UNIT];
    state->first_stage = UINT32_MAX - (uint32_t)agreed[NOT_FIRST_STAGE];
    begin_slots(op);
}

void ibshift_pace_begin(struct ibshift_op *op, struct ibshift_net *net)
{
    struct ibshift_pace_state *state = op->pace;

    state->now = ibshift_net_now(net);
    state->wake = UINT64_MAX;
    state->flying[IBSHIFT_CLASS_RECV] = state->flying[IBSHIFT_CLASS_SEND] = 0;
    state->deferred_count = state->catching_up = 0;
    state->has_begun = state->has_compared = state->is_comparing = false;
    state->children = 0;
    if (!op->params.pace->is_gated) {
        tell(op);
        begin(op, state->told);
    }
}

static void prepare_child(struct ibshift_op *op, const struct ibshift_alg *alg, size_t bytes)
{
    ibshift_op_child_params(op, alg, bytes, op->pace->children++, &op->pace->child.params);
}

static void take_largest(void *context, const void *left, void *right, void *target,
                         size_t elements)
{
    const uint64_t *theirs = left, *ours = right;
    uint64_t *largest = target;

    for (int i = 0; i < IBSHIFT_GATE_WORDS; i++) {
        largest[i] = theirs[i] > ours[i] ? theirs[i] : ours[i];
    }
}

/* Nobody passes before all have come, for the result depends on what each of them tells. */
static void prepare_gate(struct ibshift_op *op)
{
    struct ibshift_pace_state *state = op->pace;
    struct ibshift_op_params *params = &state->child.params;

    prepare_child(op, ibshift_alg_find(IBSHIFT_ALLREDUCE, "recursive_doubling"),
                  sizeof(state->told));
    tell(op);
    params->blocks[IBSHIFT_SEND].base = (char *)state->told;
    params->blocks[IBSHIFT_RECV].base = (char *)state->agreed;
    params->blocks[IBSHIFT_TMP].base = (char *)state->theirs;
    params->reduce = take_largest;
}

static void prepare_comparison(struct ibshift_op *op, struct ibshift_net *net)
{
    struct ibshift_comparison *comparison = &op->pace->comparison;
    struct ibshift_op_params *params = &op->pace->child.params;

    prepare_child(op, &ibshift_comparison_alg, sizeof(comparison->in));
    ibshift_comparison_begin(comparison, net, op->params.pace->clock, op->params.rank == 0);
    params->blocks[IBSHIFT_RECV].base = (char *)&comparison->in;
    params->blocks[IBSHIFT_TMP].base = (char *)&comparison->out;
    params->reduce = ibshift_comparison_stamp;
    params->reduce_context = comparison;
}

struct ibshift_op *ibshift_pace_child(struct ibshift_op *op, struct ibshift_net *net)
{
    struct ibshift_pace_state *state = op->pace;

    if (state->has_begun) {
        return NULL;
    }
    if (ibshift_op_is_done(&state->child)) {
        if (state->is_comparing) {
            prepare_comparison(op, net);
        } else {
            prepare_gate(op);
        }
    }
    return &state->child;
}

/* Behind the first gate the clocks are compared when any rank wants it; then there is another gate,
 * because a comparison leaves the ranks out of step. */
void ibshift_pace_child_ended(struct ibshift_op *op)
{
    struct ibshift_pace_state *state = op->pace;

    if (state->is_comparing) {
        state->is_comparing = false;
        state->has_compared = true;
        if (state->comparison.has_jumped && op->params.pace->memory != NULL) {
            op->params.pace->memory->jumps++;
        }
    } else if (state->agreed[WANTS_COMPARISON] != 0 && !state->has_compared) {
        state->is_comparing = true;
    } else {
        begin(op, state->agreed);
    }
}

static void defer(struct ibshift_op *op, struct ibshift_net *net, const struct ibshift_step *step)
{
    struct ibshift_pace_state *state = op->pace;
    struct ibshift_pace_memory *memory = op->params.pace->memory;
    struct ibshift_deferred *deferred = &state->deferred[state->deferred_count++];
    struct ibshift_net_key key = {ibshift_op_word(op), op->seq, ibshift_step_key(step)};

    deferred->step = *step;
    deferred->index = ibshift_walk_start(&op->walk, IBSHIFT_CLASS_SEND);
    if (memory != NULL) {
        memory->left++;
        if (memory->left_to != NULL) {
            memory->left_to[deferred->step.peer]++;
        }
    }
    state->flight[IBSHIFT_CLASS_SEND][deferred->index] =
        (struct ibshift_pace_flight){.is_uncounted = true};
    op->moves++;
    ibshift_net_leave(net, ibshift_op_peer(op, deferred->step.peer), &key);
}

static bool may_defer(const struct ibshift_op *op, const struct ibshift_step *step)
{
    return op->pace->deferred_count < IBSHIFT_DEFERRED_MAX && step->need == 0 && step->drain == 0;
}

const struct ibshift_step *ibshift_pace_next(struct ibshift_op *op, struct ibshift_net *net,
                                             enum ibshift_class which,
                                             const struct ibshift_step *step)
{
    enum ibshift_verdict verdict = IBSHIFT_DEFER;

    if (which == IBSHIFT_CLASS_LOCAL) {
        return step;
    }
    if (!op->pace->has_begun) {
        return NULL;
    }
    while (step != NULL && verdict == IBSHIFT_DEFER) {
        verdict = which == IBSHIFT_CLASS_RECV ? may_recv(op, step) : may_send(op, net, step);
        if (verdict == IBSHIFT_DEFER && !may_defer(op, step)) {
            verdict = IBSHIFT_GO;
        } else if (verdict == IBSHIFT_DEFER) {
            defer(op, net, step);
            step = ibshift_walk_next(&op->walk, which);
        }
    }
    return verdict == IBSHIFT_GO ? step : NULL;
}

void ibshift_pace_ended(struct ibshift_op *op, struct ibshift_net *net, enum ibshift_class which,
                        uint32_t index)
{
    const struct ibshift_pace_flight *flight = &op->pace->flight[which][index];

    if (which == IBSHIFT_CLASS_SEND && flight->is_catching_up) {
        op->pace->catching_up--;
    } else if (which == IBSHIFT_CLASS_SEND) {
        learn(op, ibshift_net_now(net) - flight->since);
    }
    stop_counting(op, which, index);
}

/* The oldest deferred send whose grant is here. When none has its grant and none is in flight, the
 * oldest of all is given to the net anyway: only then does the net watch over its receiver. */
int ibshift_pace_next_deferred(struct ibshift_op *op, struct ibshift_net *net)
{
    struct ibshift_pace_state *state = op->pace;

    if (op->walk.cursor[IBSHIFT_CLASS_SEND].has_step ||
        state->catching_up >= op->params.pace->catch_up) {
        return -1;
    }
    for (uint32_t i = 0; i < state->deferred_count; i++) {
        uint64_t hint;

        if (is_granted(op, net, &state->deferred[i].step, &hint)) {
            return (int)i;
        }
    }
    return state->deferred_count > 0 && state->catching_up == 0 ? 0 : -1;
}

void ibshift_pace_uncount(struct ibshift_op *op, enum ibshift_class which, uint32_t index)
{
    stop_counting(op, which, index);
    op->moves++;
}
