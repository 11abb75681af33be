#include "exec/pace/clock.h"

#include <stdlib.h>

#include "plan/alg_emit.h"

static const double drift_max = 500e-6; /* quartz is ten times better; above it, a clock jumped */

/* So far apart, two offsets with the errors of a wire tell a drift. */
static const uint64_t drift_time = 500 * 1000 * 1000;

static int compare(const void *a, const void *b)
{
    const struct ibshift_trip *x = a, *y = b;

    return x->time < y->time ? -1 : x->time > y->time;
}

void ibshift_clock_fit(struct ibshift_trip *trips, uint32_t count, struct ibshift_trip *fit)
{
    uint32_t kept = count - count * IBSHIFT_CLOCK_DROPPED / 100;
    double offset = 0;

    qsort(trips, count, sizeof(*trips), compare);
    for (uint32_t i = 0; i < kept; i++) {
        offset += (double)(trips[i].offset - trips[0].offset) / kept;
    }
    fit->offset = trips[0].offset + (int64_t)offset;
    fit->time = trips[kept - 1].time;
}

/* A comparison at this own time. From two, some time apart, comes the drift. False: a clock has
 * jumped in between. */
static bool set_clock(struct ibshift_clock *clock, uint64_t own, int64_t offset, uint64_t error)
{
    uint64_t passed = own - clock->since;
    bool is_smooth = true;

    if (clock->is_known && passed >= drift_time) {
        double drift = (double)(offset - clock->offset) / (double)passed;

        is_smooth = drift < drift_max && drift > -drift_max;
        clock->drift = is_smooth ? drift : 0;
    }
    clock->offset = offset;
    clock->since = own;
    clock->error = error;
    clock->is_known = true;
    return is_smooth;
}

enum { ROUNDS_WITH_ONE = 2 * IBSHIFT_CLOCK_TRIPS + 1 };

/* The distance to the parent; rank 0 has none, and children at all distances. */
static uint32_t distance_up(uint32_t rank)
{
    return rank == 0 ? UINT32_C(1) << 31 : rank & -rank;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    uint32_t partners = rank != 0;

    for (uint32_t child = 1; child < distance_up(rank) && rank + child < plan->ranks; child *= 2) {
        partners++;
    }
    return partners * ROUNDS_WITH_ONE;
}

/*
 * With the parent, even rounds stamp a question and odd ones exchange it for the answer; with a
 * child, even rounds send the answer before and take a question, and odd ones stamp its answer.
 */
static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    uint32_t partner = round / ROUNDS_WITH_ONE, turn = round % ROUNDS_WITH_ONE, trip = turn / 2;
    bool asks = rank != 0 && partner == 0;
    uint32_t peer = asks ? rank - distance_up(rank) : rank + (1u << (partner - (rank != 0)));
    struct ibshift_step *step = out;

    if ((turn % 2 == 0) == asks) {
        step = emit_reduce(step, IBSHIFT_STEP_REDUCE, emit_blocks(IBSHIFT_TMP, 0, 1), IBSHIFT_RECV,
                           0, round, round);
        return (uint32_t)(step - out);
    }
    if (asks || trip > 0) {
        step = emit_send(step, peer, emit_blocks(IBSHIFT_TMP, 0, 1), asks ? trip : trip - 1, round);
    }
    if (trip < IBSHIFT_CLOCK_TRIPS) {
        step = emit_recv(step, peer, emit_blocks(IBSHIFT_RECV, 0, 1), trip, round, 0);
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_comparison_alg = {
    .name = "clocks",
    .rounds = rounds,
    .emit = emit,
};

void ibshift_comparison_begin(struct ibshift_comparison *comparison, struct ibshift_net *net,
                              struct ibshift_clock *clock, bool is_root)
{
    *comparison = (struct ibshift_comparison){.net = net, .clock = clock, .is_root = is_root};
    if (is_root) {
        set_clock(clock, ibshift_net_now(net), 0, 0);
    }
}

static void take_answer(struct ibshift_comparison *comparison, uint64_t now)
{
    const struct ibshift_stamp *in = &comparison->in;
    struct ibshift_trip *trip = &comparison->trips[comparison->stamps - 1], fit;
    uint64_t there = (uint64_t)(in->left - in->came), time = now - comparison->asked;

    trip->time = time > there ? time - there : 0;
    trip->offset = (in->came - (int64_t)comparison->asked + in->left - (int64_t)now) / 2;
    if (comparison->stamps == IBSHIFT_CLOCK_TRIPS) {
        ibshift_clock_fit(comparison->trips, IBSHIFT_CLOCK_TRIPS, &fit);
        comparison->has_jumped =
            !set_clock(comparison->clock, now, fit.offset, fit.time / 2 + in->error);
    }
}

void ibshift_comparison_stamp(void *context, const void *in, void *with, void *out, size_t elements)
{
    struct ibshift_comparison *comparison = context;
    uint64_t now = ibshift_net_now(comparison->net);

    if (!comparison->is_root && comparison->stamps <= IBSHIFT_CLOCK_TRIPS) {
        if (comparison->stamps > 0) {
            take_answer(comparison, now);
        }
        comparison->stamps++;
        comparison->asked = now;
    }
    comparison->out.came = comparison->out.left = ibshift_clock_common(comparison->clock, now);
    comparison->out.error = comparison->clock->error;
}
