#include "exec/pace/sync.h"
#include "exec/pace/pace_impl.h"

#include <errno.h>

enum { SEND_INDEX = IBSHIFT_GATE_INDICES, RECV_INDEX };

void ibshift_sync_reset(struct ibshift_sync *sync)
{
    sync->is_done = false;
    sync->must_send = false;
    sync->child = sync->trip = sync->pending = 0;
}

/* The distance to the parent; rank 0 has none, and children at all distances. */
static uint32_t distance_up(const struct ibshift_op *op)
{
    uint32_t rank = op->params.rank;

    return rank == 0 ? 1u << 31 : rank & -rank;
}

static uint32_t other(const struct ibshift_op *op)
{
    const struct ibshift_sync *sync = &op->pace->sync;

    return sync->child == 0 ? op->params.rank - distance_up(op) : op->params.rank + sync->child;
}

uint32_t ibshift_sync_awaited(const struct ibshift_op *op)
{
    return op->pace->has_begun || op->pace->sync.is_done || op->pace->sync.pending == 0
               ? op->params.rank
               : other(op);
}

static int post(struct ibshift_op *op, struct ibshift_net *net, bool is_recv)
{
    struct ibshift_sync *sync = &op->pace->sync;
    struct ibshift_net_message message = {
        .peer = ibshift_op_peer(op, other(op)),
        .key = {.comm = op->params.comm, .seq = op->seq, .tag = IBSHIFT_SYNC_TAG | sync->trip},
        .buffer = is_recv ? &sync->in : &sync->out,
        .length = sizeof(sync->in),
        .cookie = ibshift_cookie(op, IBSHIFT_CLASS_LOCAL, is_recv ? RECV_INDEX : SEND_INDEX)};
    int rc = is_recv ? ibshift_net_recv(net, &message) : ibshift_net_send(net, &message);

    sync->pending += rc == IBSHIFT_NET_PENDING;
    op->moves += rc >= 0;
    return rc;
}

/* The answer is here. */
static void take_trip(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_sync *sync = &op->pace->sync;
    uint64_t now = ibshift_net_now(engine->net), there = (uint64_t)(sync->in.left - sync->in.came);
    uint64_t time = now - sync->asked;

    sync->trips[sync->trip].time = time > there ? time - there : 0;
    sync->trips[sync->trip].offset =
        (sync->in.came - (int64_t)sync->asked + sync->in.left - (int64_t)now) / 2;
}

/* A question is here, or an answer. */
static void came(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_sync *sync = &op->pace->sync;

    if (sync->child == 0) {
        take_trip(op, engine);
        sync->trip++;
    } else {
        sync->out.came = ibshift_clock_common(op->params.pace->clock, ibshift_net_now(engine->net));
        sync->must_send = true;
    }
}

static void set_clock(struct ibshift_op *op)
{
    struct ibshift_trip fit;
    struct ibshift_pace_memory *memory = op->params.pace->memory;

    ibshift_clock_fit(op->pace->sync.trips, IBSHIFT_CLOCK_TRIPS, &fit);
    if (!ibshift_clock_set(op->params.pace->clock, op->pace->now, fit.offset,
                           fit.time / 2 + op->pace->sync.in.error) &&
        memory != NULL) {
        memory->jumps++;
    }
}

/* On to the next child, when this rank's own clock or the child before is done. */
static void go_on(struct ibshift_op *op)
{
    struct ibshift_sync *sync = &op->pace->sync;
    bool is_root = op->params.rank == 0;

    if (sync->child == 0 && is_root) {
        ibshift_clock_set(op->params.pace->clock, op->pace->now, 0, 0);
    } else if (sync->child == 0) {
        set_clock(op);
    }
    sync->child = sync->child == 0 ? 1 : sync->child * 2;
    sync->trip = 0;
    sync->is_done =
        sync->child >= distance_up(op) || op->params.rank + sync->child >= op->params.plan.ranks;
}

/* A question or an answer. */
static int send(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_sync *sync = &op->pace->sync;
    bool is_answer = sync->child != 0;
    int rc;

    sync->asked = ibshift_net_now(engine->net);
    sync->out.left = ibshift_clock_common(op->params.pace->clock, sync->asked);
    sync->out.error = op->params.pace->clock->error;
    rc = post(op, engine->net, false);
    if (rc >= 0) {
        sync->must_send = false;
        sync->trip += is_answer;
    }
    return rc < 0 ? rc : 0;
}

/* To an answer, whose question follows, or to a question. */
static int listen(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_sync *sync = &op->pace->sync;
    int rc = post(op, engine->net, true);

    if (rc >= 0) {
        sync->must_send = sync->child == 0;
    }
    if (rc == IBSHIFT_NET_DONE) {
        came(op, engine);
    }
    return rc < 0 ? rc : 0;
}

int ibshift_sync_turn(struct ibshift_op *op, struct ibshift_engine *engine)
{
    struct ibshift_sync *sync = &op->pace->sync;
    int rc = 0;

    while (rc == 0 && !sync->is_done) {
        bool is_root = sync->child == 0 && op->params.rank == 0;

        if (sync->must_send) {
            rc = send(op, engine);
        } else if (sync->pending > 0) {
            break;
        } else if (is_root || sync->trip == IBSHIFT_CLOCK_TRIPS) {
            go_on(op);
        } else {
            rc = listen(op, engine);
        }
    }
    return rc == -EAGAIN ? 0 : rc;
}

void ibshift_sync_event(struct ibshift_op *op, struct ibshift_engine *engine, uint32_t index)
{
    op->pace->sync.pending--;
    if (index == RECV_INDEX) {
        came(op, engine);
    }
}
