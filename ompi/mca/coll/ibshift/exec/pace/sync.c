#include "exec/pace/sync.h"

#include <errno.h>

#include "exec/op.h"
#include "exec/pace/gate.h"

enum { SEND_INDEX = IBSHIFT_GATE_INDICES, RECV_INDEX };

void ibshift_sync_reset(struct ibshift_sync *sync)
{
    sync->is_done = sync->has_jumped = false;
    sync->must_send = false;
    sync->child = sync->trip = sync->pending = 0;
}

/* The distance to the parent; rank 0 has none, and children at all distances. */
static uint32_t distance_up(const struct ibshift_op *op)
{
    uint32_t rank = op->params.rank;

    return rank == 0 ? 1u << 31 : rank & -rank;
}

static uint32_t other(const struct ibshift_sync *sync, const struct ibshift_op *op)
{
    return sync->child == 0 ? op->params.rank - distance_up(op) : op->params.rank + sync->child;
}

uint32_t ibshift_sync_awaited(const struct ibshift_sync *sync, const struct ibshift_op *op)
{
    return sync->is_done || sync->pending == 0 ? op->params.rank : other(sync, op);
}

static int post(struct ibshift_sync *sync, struct ibshift_op *op, struct ibshift_net *net,
                bool is_recv)
{
    struct ibshift_net_message message = {
        .peer = ibshift_op_peer(op, other(sync, op)),
        .key = {.comm = op->params.comm, .seq = op->seq, .tag = IBSHIFT_SYNC_TAG | sync->trip},
        .buffer = is_recv ? &sync->in : &sync->out,
        .length = sizeof(sync->in),
        .cookie = ibshift_op_cookie(op, IBSHIFT_CLASS_LOCAL, is_recv ? RECV_INDEX : SEND_INDEX)};
    int rc = is_recv ? ibshift_net_recv(net, &message) : ibshift_net_send(net, &message);

    sync->pending += rc == IBSHIFT_NET_PENDING;
    op->moves += rc >= 0;
    return rc;
}

/* The answer is here. */
static void take_trip(struct ibshift_sync *sync, struct ibshift_net *net)
{
    uint64_t now = ibshift_net_now(net), there = (uint64_t)(sync->in.left - sync->in.came);
    uint64_t time = now - sync->asked;

    sync->trips[sync->trip].time = time > there ? time - there : 0;
    sync->trips[sync->trip].offset =
        (sync->in.came - (int64_t)sync->asked + sync->in.left - (int64_t)now) / 2;
}

/* A question is here, or an answer. */
static void came(struct ibshift_sync *sync, struct ibshift_net *net,
                 const struct ibshift_clock *clock)
{
    if (sync->child == 0) {
        take_trip(sync, net);
        sync->trip++;
    } else {
        sync->out.came = ibshift_clock_common(clock, ibshift_net_now(net));
        sync->must_send = true;
    }
}

static void set_clock(struct ibshift_sync *sync, struct ibshift_clock *clock, uint64_t now)
{
    struct ibshift_trip fit;

    ibshift_clock_fit(sync->trips, IBSHIFT_CLOCK_TRIPS, &fit);
    sync->has_jumped = !ibshift_clock_set(clock, now, fit.offset, fit.time / 2 + sync->in.error);
}

/* On to the next child, when this rank's own clock or the child before is done. */
static void go_on(struct ibshift_sync *sync, const struct ibshift_op *op,
                  struct ibshift_clock *clock, uint64_t now)
{
    bool is_root = op->params.rank == 0;

    if (sync->child == 0 && is_root) {
        ibshift_clock_set(clock, now, 0, 0);
    } else if (sync->child == 0) {
        set_clock(sync, clock, now);
    }
    sync->child = sync->child == 0 ? 1 : sync->child * 2;
    sync->trip = 0;
    sync->is_done =
        sync->child >= distance_up(op) || op->params.rank + sync->child >= op->params.plan.ranks;
}

/* A question or an answer. */
static int send(struct ibshift_sync *sync, struct ibshift_op *op, struct ibshift_net *net,
                const struct ibshift_clock *clock)
{
    bool is_answer = sync->child != 0;
    int rc;

    sync->asked = ibshift_net_now(net);
    sync->out.left = ibshift_clock_common(clock, sync->asked);
    sync->out.error = clock->error;
    rc = post(sync, op, net, false);
    if (rc >= 0) {
        sync->must_send = false;
        sync->trip += is_answer;
    }
    return rc < 0 ? rc : 0;
}

/* To an answer, whose question follows, or to a question. */
static int listen(struct ibshift_sync *sync, struct ibshift_op *op, struct ibshift_net *net,
                  const struct ibshift_clock *clock)
{
    int rc = post(sync, op, net, true);

    if (rc >= 0) {
        sync->must_send = sync->child == 0;
    }
    if (rc == IBSHIFT_NET_DONE) {
        came(sync, net, clock);
    }
    return rc < 0 ? rc : 0;
}

int ibshift_sync_turn(struct ibshift_sync *sync, struct ibshift_op *op, struct ibshift_net *net,
                      struct ibshift_clock *clock)
{
    int rc = 0;

    while (rc == 0 && !sync->is_done) {
        bool is_root = sync->child == 0 && op->params.rank == 0;

        if (sync->must_send) {
            rc = send(sync, op, net, clock);
        } else if (sync->pending > 0) {
            break;
        } else if (is_root || sync->trip == IBSHIFT_CLOCK_TRIPS) {
            go_on(sync, op, clock, ibshift_net_now(net));
        } else {
            rc = listen(sync, op, net, clock);
        }
    }
    return rc == -EAGAIN ? 0 : rc;
}

void ibshift_sync_event(struct ibshift_sync *sync, struct ibshift_net *net,
                        const struct ibshift_clock *clock, uint32_t index)
{
    sync->pending--;
    if (index == RECV_INDEX) {
        came(sync, net, clock);
    }
}
